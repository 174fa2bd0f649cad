#ifndef KVICK_QUANT_IQ4_VALUES_H_
#define KVICK_QUANT_IQ4_VALUES_H_

#include <array>
#include <cstdint>

namespace kvick {

// The sixteen weights, before their scale, that the four bits of IQ4_NL and IQ4_XS stand for:
// denser around 0, where weights are.
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// The index of the value nearest to weight / scale.
inline int NearestIq4(float weight, float scale) {
  const float quotient = scale == 0.0f ? 0.0f : weight / scale;
  int nearest = 0;
  for (int i = 1; i < 16; ++i) {
    const float middle = 0.5f * static_cast<float>(kIq4Values[i - 1] + kIq4Values[i]);
    if (quotient > middle) nearest = i;
  }
  return nearest;
}

}  // namespace kvick

#endif  // KVICK_QUANT_IQ4_VALUES_H_
