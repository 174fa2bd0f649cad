#ifndef KVICK_QUANT_CHOOSE_CODES_H_
#define KVICK_QUANT_CHOOSE_CODES_H_

#include <cstdint>

namespace kvick {

// What packing a block has in common: the choice of scales and codes.

// The nearest integer to value / scale in [least, most]; where the scale is 0, the nearest to 0.
int NearestCode(float value, float scale, int least, int most);

struct Extremes {
  float least, most;
};
// Of num values; 0 counts as one of them.
Extremes ExtremesOf(const float* values, int64_t num);
float LargestMagnitude(const float* values, int64_t num);

// Scales of a block of sub-blocks: weight = d * scales[j] * code - dmin * minimums[j]. Both d and
// dmin are numbers of f16.
struct SubScales {
  float d = 0, dmin = 0;
  int scales[16] = {}, minimums[16] = {};

  // The code of a weight of sub-block j, in [least, most].
  int Code(float value, int j, int least, int most) const;
};

struct SubBlocks {
  int num;
  int elements;   // of each
  int most_code;  // and the largest of a code, a scale and a minimum
  int most_scale;
};
// With minimums: codes from 0 on.
SubScales ChooseScalesAndMinimums(const float* values, const SubBlocks& blocks);
// Without: codes of both signs.
SubScales ChooseScales(const float* values, const SubBlocks& blocks);

}  // namespace kvick

#endif  // KVICK_QUANT_CHOOSE_CODES_H_
