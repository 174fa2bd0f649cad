#include "quant/q8_0.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype.h"

namespace kvick {

void DecodeQ8_0(const std::byte* src, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += kQ8BlockWeights, src += kQ8BlockBytes) {
    uint16_t scale_bits;
    std::memcpy(&scale_bits, src, sizeof(scale_bits));
    const float scale = F16ToF32(scale_bits);
    const auto* quants = reinterpret_cast<const int8_t*>(src + sizeof(scale_bits));
    for (int64_t j = 0; j < kQ8BlockWeights; ++j)
      dst[i + j] = scale * static_cast<float>(quants[j]);
  }
}

void EncodeQ8_0(const float* src, int64_t n, std::byte* dst) {
  for (int64_t i = 0; i < n; i += kQ8BlockWeights, dst += kQ8BlockBytes) {
    float max = 0;
    for (int64_t j = 0; j < kQ8BlockWeights; ++j) max = std::max(max, std::abs(src[i + j]));
    const uint16_t scale_bits = F32ToF16(max / 127);
    const float scale = F16ToF32(scale_bits);
    const float inverse = scale > 0 ? 1 / scale : 0.0f;
    std::memcpy(dst, &scale_bits, sizeof(scale_bits));
    for (int64_t j = 0; j < kQ8BlockWeights; ++j) {
      const float quant = std::clamp(std::nearbyint(src[i + j] * inverse), -127.0f, 127.0f);
      dst[2 + j] = static_cast<std::byte>(static_cast<int8_t>(quant));
    }
  }
}

}  // namespace kvick
