#include "quant/choose_codes.h"

#include <algorithm>
#include <cmath>

#include "base/dtype.h"

namespace kvick {
namespace {

float RoundedToF16(float value) { return F16ToF32(F32ToF16(value)); }

// Integers in [0, most] that, times the f16 returned, are nearest to `values`.
float ChooseShares(const float (&values)[16], int num, int most, int* shares) {
  const float unit =
      RoundedToF16(*std::max_element(values, values + num) / static_cast<float>(most));
  for (int j = 0; j < num; ++j) shares[j] = NearestCode(values[j], unit, 0, most);
  return unit;
}

}  // namespace

int NearestCode(float value, float scale, int least, int most) {
  const float quotient = scale == 0.0f ? 0.0f : value / scale;
  const float nearest = std::nearbyint(quotient);
  return static_cast<int>(std::clamp(nearest, static_cast<float>(least), static_cast<float>(most)));
}

Extremes ExtremesOf(const float* values, int64_t num) {
  Extremes extremes{0.0f, 0.0f};
  for (int64_t i = 0; i < num; ++i) {
    extremes.least = std::min(extremes.least, values[i]);
    extremes.most = std::max(extremes.most, values[i]);
  }
  return extremes;
}

float LargestMagnitude(const float* values, int64_t num) {
  const Extremes extremes = ExtremesOf(values, num);
  return std::max(extremes.most, -extremes.least);
}

int SubScales::Code(float value, int j, int least, int most) const {
  const float scale = d * static_cast<float>(scales[j]);
  return NearestCode(value + dmin * static_cast<float>(minimums[j]), scale, least, most);
}

SubScales ChooseScalesAndMinimums(const float* values, const SubBlocks& blocks) {
  float scales[16] = {}, minimums[16] = {};
  for (int j = 0; j < blocks.num; ++j) {
    const Extremes extremes = ExtremesOf(values + j * blocks.elements, blocks.elements);
    scales[j] = (extremes.most - extremes.least) / static_cast<float>(blocks.most_code);
    minimums[j] = -extremes.least;
  }
  SubScales sub;
  sub.d = ChooseShares(scales, blocks.num, blocks.most_scale, sub.scales);
  sub.dmin = ChooseShares(minimums, blocks.num, blocks.most_scale, sub.minimums);
  return sub;
}

SubScales ChooseScales(const float* values, const SubBlocks& blocks) {
  float scales[16] = {};
  for (int j = 0; j < blocks.num; ++j) {
    scales[j] = LargestMagnitude(values + j * blocks.elements, blocks.elements) /
                static_cast<float>(blocks.most_code);
  }
  SubScales sub;
  sub.d = ChooseShares(scales, blocks.num, blocks.most_scale, sub.scales);
  return sub;
}

}  // namespace kvick
