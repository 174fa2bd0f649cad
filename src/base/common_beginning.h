#ifndef KVICK_BASE_COMMON_BEGINNING_H_
#define KVICK_BASE_COMMON_BEGINNING_H_

#include <algorithm>
#include <cstdint>
#include <span>

namespace kvick {

// How many tokens two texts begin with alike.
inline int64_t NumCommonTokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace kvick

#endif  // KVICK_BASE_COMMON_BEGINNING_H_
