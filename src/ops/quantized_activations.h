#ifndef KVICK_OPS_QUANTIZED_ACTIVATIONS_H_
#define KVICK_OPS_QUANTIZED_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/exec.h"
#include "ops/linear.h"
#include "ops/quantized_shape.h"

namespace kvick {

// Activations as integers of 16 bits, for quantized weights. Each 32 columns have one scale:
//
//   amax = max |x|,  scale = amax / 32639,  a = x * (32639 / amax), rounded to nearest even
//
// so a = 256 high + low with both in [-128, 127]. A block whose amax is below 2^-64 is zero; one
// with an infinity or a NaN has a = 0 and a NaN as its scale. Columns past the last are zeros.

// How the integers of a step lie.
enum class IntegerLayout {
  kInt16,  ///< ascending columns
  kLanes,  ///< for VPDPBUSD: four columns of each sub-block a vector, lanes
           ///< in the order of the shape; all vectors of high bytes, then those of low ones
};

// Each step: the integers, then for each of its sixteen sub-blocks, with kLanes in the
// order of lanes, the scale, then the f32 sum of
// the activations (formats with minimums) or -offset * the sum of the integers (the others).
struct QuantizedActivations {
  IntegerLayout layout = IntegerLayout::kInt16;
  QuantizedShape shape;
  int64_t num_steps = 0;
  int64_t row_stride = 0;  // bytes; an odd number of cache lines, so that rows share no sets
  std::byte* data = nullptr;

  // Without memory. REQUIRES: num_cols >= 1.
  static QuantizedActivations For(IntegerLayout layout, const QuantizedShape& shape,
                                  int64_t num_cols);

  const std::byte* Row(int64_t token) const { return data + token * row_stride; }
};

constexpr int64_t IntegerBytes(const QuantizedShape& shape) { return shape.step_columns() * 2; }
constexpr int64_t IntegerStepBytes(const QuantizedShape& shape) {
  return IntegerBytes(shape) + 2 * 64;
}

// Fills `packed` with the activations of args, on all threads.
// REQUIRES: packed.data has num_tokens rows and is aligned to 64.
void QuantizeActivations(const Exec& exec, const LinearArgs& args,
                         const QuantizedActivations& packed);

}  // namespace kvick

#endif  // KVICK_OPS_QUANTIZED_ACTIVATIONS_H_
