#ifndef KVICK_BASE_DTYPE_H_
#define KVICK_BASE_DTYPE_H_

#include <bit>
#include <cstdint>

#include "kvick/tensor.h"

namespace kvick {

inline float BF16ToF32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// To nearest, ties to even. NaN stays NaN (quiet); denormals are kept.
inline uint16_t F32ToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(is_nan ? ((bits >> 16) | 0x40u) : rounded);
}

float F16ToF32(uint16_t bits);
// To nearest, ties to even; too large becomes infinity. NaN stays NaN (quiet); denormals are kept.
uint16_t F32ToF16(float value);

// dst[i] = value of src[i] in `dtype`, for i in [0, n).
// The result is the correctly rounded one, whatever instructions the machine has.
void ConvertFromF32(DType dtype, const float* src, int64_t n, void* dst);

// dst[i] = src[i], exactly. `src` may have any alignment.
void ConvertToF32(DType dtype, const void* src, int64_t n, float* dst);

}  // namespace kvick

#endif  // KVICK_BASE_DTYPE_H_
