#ifndef KVICK_FUZZ_FUZZ_H_
#define KVICK_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvick {

// What a fuzz target defines. libFuzzer calls the first alone; fuzz_main.cc calls both.

// Feeds the bytes to the parser. Returns 0; a crash, a sanitizer report or a hang is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Valid inputs to start from.
std::vector<std::string> FuzzSeeds();

}  // namespace kvick

#endif  // KVICK_FUZZ_FUZZ_H_
