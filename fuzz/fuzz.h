#ifndef KVICK_FUZZ_FUZZ_H_
#define KVICK_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvick {

// Every fuzz target defines these two functions. libFuzzer calls only the first, fuzz_main.cc both.

// Gives the bytes to the parser and returns 0. A crash, a sanitizer report or a hang is a bug.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Valid inputs, from which mutations start.
std::vector<std::string> FuzzSeeds();

}  // namespace kvick

#endif  // KVICK_FUZZ_FUZZ_H_
