#ifndef KVICK_OPS_LINEAR_QUANTIZED_H_
#define KVICK_OPS_LINEAR_QUANTIZED_H_

#include <cstddef>
#include <cstdint>

#include "base/isa.h"
#include "ops/linear.h"
#include "ops/quantized_activations.h"

namespace kvick {

// The canonical order of one output y[t,n] with quantized weights. Activations are integers of 16
// bits with a scale for each 32 columns (quantized_activations.h), weights integers with a scale,
// and perhaps a minimum, for each sub-block of 16 or 32 columns (quantized_shape.h). For sub-block
// j, ascending, sixteen lanes that start at +0 add, each += fused:
//
//   S_j = sum of (code - offset) * a over the columns of j: exact in 32 bits, so in any order
//   lane j % 16 += float(S_j) * (scale_j * x_scale_j)
//   lane j % 16 += minimum_j * x_sum_j              (formats with minimums)
//   x_sum_j = x_scale_j * float(sum of a over the columns of j)
//
// Sub-blocks past the last, up to a multiple of sixteen, are zeros. Then SumLanes adds the lanes,
// and the bias is added. 2^-64 as the smallest amax keeps every product of scales a normal number.

// Rows [begin_row, end_row) of w for all tokens.
struct QuantizedTask {
  const LinearArgs* args = nullptr;
  const QuantizedActivations* x = nullptr;
  int64_t row_bytes = 0;
  int64_t begin_row = 0;
  int64_t end_row = 0;
  std::byte* scratch = nullptr;  // QuantizedScratchBytes of this thread
};

// Up to so many, a task has rows as memory wants them; more tokens want whole panels of rows.
inline constexpr int64_t kFewTokens = 4;

QuantizedShape ShapeOf(WeightType type);

void MultiplyQuantized(Isa isa, const QuantizedTask& task);
int64_t QuantizedScratchBytes();

// Rows that are worth a task.
int64_t QuantizedRowsPerTask(const LinearArgs& args);

}  // namespace kvick

#endif  // KVICK_OPS_LINEAR_QUANTIZED_H_
