// Linear with quantized weights for few tokens: weights are read where they lie, a row at a time
// for up to four tokens. Bound by memory where the processor has VPDPBUSD.

#include "ops/linear_quantized.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_quantized.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/f32x16-inl.h"
#include "hwy/highway.h"
#include "ops/quantized_blocks-inl.h"
#include "ops/quantized_dots-inl.h"
#include "ops/quantized_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

template <class Block>
void Run(const QuantizedTask& task) {
#if HWY_TARGET == HWY_AVX3
  if (task.x->layout == IntegerLayout::kLanes) return RunByDots<Block>(task);
#endif
  RunByWords<Block>(task);
}

QuantizedShape ShapeOfBlock(WeightType type) {
  QuantizedShape shape;
  WithBlock(type, [&](auto block) HWY_ATTR { shape = decltype(block)::kShape; });
  return shape;
}

void RunTask(const QuantizedTask& task) {
  WithBlock(task.args->w.type, [&](auto block) HWY_ATTR { Run<decltype(block)>(task); });
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void MultiplyQuantized(Isa isa, const QuantizedTask& task) { KVICK_FOR_ISA(isa, RunTask)(task); }

QuantizedShape ShapeOf(WeightType type) { return N_SCALAR::ShapeOfBlock(type); }

int64_t QuantizedRowsPerTask(const LinearArgs& args) {
  constexpr int64_t kRowsOfManyTokens = 32;
  return args.num_tokens <= kFewTokens ? WeightRowsPerTask(RowBytes(args.w), 4) : kRowsOfManyTokens;
}

int64_t QuantizedScratchBytes() { return sizeof(QuantizedScratch); }

}  // namespace kvick
#endif  // HWY_ONCE
