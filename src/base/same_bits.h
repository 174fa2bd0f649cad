#ifndef KVICK_BASE_SAME_BITS_H_
#define KVICK_BASE_SAME_BITS_H_

#include <cstring>
#include <span>

namespace kvick {

// Equal in all bits: tells 0 from -0, and a NaN from another.
inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace kvick

#endif  // KVICK_BASE_SAME_BITS_H_
