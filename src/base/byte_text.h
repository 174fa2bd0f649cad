#ifndef KVICK_BASE_BYTE_TEXT_H_
#define KVICK_BASE_BYTE_TEXT_H_

#include <cstdint>
#include <string>

namespace kvick {

// A number of bytes with a unit, for people: "640 B", "128.00 KiB", "1.50 GiB".
std::string ByteText(int64_t num_bytes);

}  // namespace kvick

#endif  // KVICK_BASE_BYTE_TEXT_H_
