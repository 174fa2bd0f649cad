#ifndef KVICK_OPS_LINEAR_KERNELS_H_
#define KVICK_OPS_LINEAR_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "base/isa.h"
#include "ops/linear.h"
#include "ops/packed_activations.h"

namespace kvick {

// The canonical order of one output y[t,n], whichever kernel computes it; that of quantized weights
// is in linear_quantized.h. Sixteen lanes start at
// +0. A step of weights (16 columns, or 32 of bf16) is multiplied by the same step of the
// activations and added to the lanes, in ascending order. Then SumLanes adds the lanes, and the
// bias is added.
//
//   f32, f16   lane i += w[16s + i] * x[16s + i]
//   bf16       lane i += w[32s + 2i + 1] * x[32s + 2i + 1], then += w[32s + 2i] * x[32s + 2i].
//              Where x is the sum of two bf16, each step does so with the leading terms, then with
//              the second ones
//
// Each += is one fused multiply-add. The product of two bf16 is exact in f32, so the two additions
// of a pair are what VDPBF16PS does. Columns past the last are zeros.

// Rows [begin_row, end_row) of w for all tokens.
struct LinearTask {
  const LinearArgs* args = nullptr;
  const PackedActivations* x = nullptr;
  int64_t row_bytes = 0;
  int64_t begin_row = 0;
  int64_t end_row = 0;
  std::byte* scratch = nullptr;  // PanelScratchBytes of this thread
  bool has_bf16_dot = false;     // w is bf16, and the processor has VDPBF16PS
};

// Reads weights where they lie, a few rows at a time for up to eight tokens: the kernel for few
// tokens, which is bound by memory.
void MultiplyInPlace(Isa isa, const LinearTask& task);

// Unpacks a panel of a few rows into the L1 cache, once for up to 128 tokens: the kernel for many
// tokens, which is bound by arithmetic.
void MultiplyInPanels(Isa isa, const LinearTask& task);
int64_t PanelScratchBytes();

// Tokens from which panels are faster.
int64_t MinPanelTokens(Isa isa);
inline constexpr int64_t kPanelRowMultiple = 28;  // rows of a task: a multiple, but for the last

}  // namespace kvick

#endif  // KVICK_OPS_LINEAR_KERNELS_H_
