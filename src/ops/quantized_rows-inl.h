// What every implementation of Linear with quantized weights needs of a row: its steps, and the
// end of the canonical order.

#if defined(KVICK_OPS_QUANTIZED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_ROWS_INL_H_
#undef KVICK_OPS_QUANTIZED_ROWS_INL_H_
#else
#define KVICK_OPS_QUANTIZED_ROWS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/f32x16-inl.h"
#include "hwy/highway.h"
#include "ops/linear_quantized.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// The tail of a row: as many blocks as there are, the others zero.
template <class Block>
HWY_INLINE const uint8_t* WholeStep(const uint8_t* blocks, int64_t num_blocks, uint8_t* buffer) {
  constexpr QuantizedShape kShape = Block::kShape;
  if (num_blocks >= kShape.step_blocks()) return blocks;
  std::memset(buffer, 0, kShape.step_bytes());
  std::memcpy(buffer, blocks, static_cast<size_t>(num_blocks * kShape.block_bytes));
  return buffer;
}

HWY_INLINE void WriteOut(const QuantizedTask& task, int64_t row, int64_t token,
                         const F32x16& sums) {
  const LinearArgs& args = *task.args;
  const float sum = SumLanes(sums);
  float& y = args.y[token * args.w.num_rows + row];
  y = args.bias == nullptr ? sum : sum + args.bias[row];
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
