#ifndef KVICK_OPS_OPS_TEST_UTIL_H_
#define KVICK_OPS_OPS_TEST_UTIL_H_

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/isa.h"

namespace kvick {

inline constexpr double kF32HalfUlp = 0x1p-24;  // relative error of one f32 rounding
inline constexpr double kBF16HalfUlp = 0x1p-8;  // of one bf16 rounding

inline std::vector<float> RandomFloats(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// Equality of bits, which tells 0 from -0 and NaN from NaN.
inline bool SameBits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

}  // namespace kvick

#endif  // KVICK_OPS_OPS_TEST_UTIL_H_
