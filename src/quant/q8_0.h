#ifndef KVICK_QUANT_Q8_0_H_
#define KVICK_QUANT_Q8_0_H_

#include <cstddef>
#include <cstdint>

#include "quant/weight_format.h"

namespace kvick {

// Q8_0: 32 weights in 34 bytes.
//
//   f16 d | int8 q[32]        weight i = d * q[i]
inline constexpr int64_t kQ8BlockWeights = 32;
inline constexpr int64_t kQ8BlockBytes = 34;

void DecodeQ8_0(const std::byte* src, int64_t n, float* dst);
void EncodeQ8_0(const float* src, int64_t n, std::byte* dst);

inline constexpr WeightFormat kQ8_0Format{WeightType::kQ8_0, "q8_0",        "Q8_0", 8,
                                          kQ8BlockWeights,   kQ8BlockBytes, {},     DecodeQ8_0,
                                          EncodeQ8_0};

}  // namespace kvick

#endif  // KVICK_QUANT_Q8_0_H_
