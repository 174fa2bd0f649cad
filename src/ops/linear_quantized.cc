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
#include "ops/quantized_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// ---- Any processor: the integers of a step in memory.

template <class Block>
struct PlainStep {
  static constexpr QuantizedShape kShape = Block::kShape;
  alignas(64) int16_t codes[kShape.step_columns()];
  alignas(64) float scales[16];
  alignas(64) float minimums[16];

  HWY_INLINE void Load(const uint8_t* step) {
    constexpr int64_t kBlockSubs = kShape.block_columns / kShape.sub_columns;
    alignas(64) uint8_t bytes[kShape.block_columns];
    for (int64_t block = 0; block < kShape.step_blocks(); ++block) {
      Block::Codes(step + block * kShape.block_bytes, bytes);
      int16_t* to = codes + block * kShape.block_columns;
      for (int64_t i = 0; i < kShape.block_columns; ++i) to[i] = bytes[i];
      Block::Scales(step + block * kShape.block_bytes, scales + block * kBlockSubs,
                    minimums + block * kBlockSubs);
    }
  }

  HWY_INLINE void AddTo(const std::byte* x, F32x16& sums) const {
    alignas(64) int32_t ints[16];
    const auto* a = reinterpret_cast<const int16_t*>(x);
    for (int64_t sub = 0; sub < 16; ++sub) {
      int32_t sum = 0;
      for (int64_t i = 0; i < kShape.sub_columns; ++i) {
        sum += codes[sub * kShape.sub_columns + i] * a[sub * kShape.sub_columns + i];
      }
      ints[sub] = sum;
    }
    const hn::RebindToSigned<F32Tag> d32;
    const std::byte* extra = x + IntegerBytes(kShape);
    const auto* x_scales = reinterpret_cast<const float*>(extra);
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t i = part * kLanes;
      auto sub_sums = hn::Load(d32, ints + i);
      if constexpr (!kShape.has_minimums) {
        sub_sums =
            hn::Add(sub_sums, hn::Load(d32, reinterpret_cast<const int32_t*>(extra + 64) + i));
      }
      F32Vector& sum = sums.part[part];
      const F32Vector scale =
          hn::Mul(hn::Load(F32Tag(), scales + i), hn::Load(F32Tag(), x_scales + i));
      sum = Fma(hn::ConvertTo(F32Tag(), sub_sums), scale, sum);
      if constexpr (kShape.has_minimums) {
        const auto* x_sums = reinterpret_cast<const float*>(extra + 64);
        sum = Fma(hn::Load(F32Tag(), minimums + i), hn::Load(F32Tag(), x_sums + i), sum);
      }
    }
  }
};

template <class Block>
void RunPlainly(const QuantizedTask& task) {
  constexpr QuantizedShape kShape = Block::kShape;
  constexpr int64_t kBlockTokens = 16;
  const LinearArgs& args = *task.args;
  const int64_t num_blocks = args.w.num_cols / kShape.block_columns;
  uint8_t tail[kShape.step_bytes()];
  PlainStep<Block> step;
  for (int64_t token = 0; token < args.num_tokens; token += kBlockTokens) {
    const int64_t num_tokens = std::min(kBlockTokens, args.num_tokens - token);
    for (int64_t row = task.begin_row; row < task.end_row; ++row) {
      const auto* w = reinterpret_cast<const uint8_t*>(args.w.data) + row * task.row_bytes;
      F32x16 sums[kBlockTokens];
      for (F32x16& sum : sums) sum = ZeroF32x16();
      for (int64_t s = 0; s < task.x->num_steps; ++s) {
        const int64_t first = s * kShape.step_blocks();
        step.Load(WholeStep<Block>(w + s * kShape.step_bytes(), num_blocks - first, tail));
        for (int64_t t = 0; t < num_tokens; ++t) {
          step.AddTo(task.x->Row(token + t) + s * IntegerStepBytes(kShape), sums[t]);
        }
      }
      for (int64_t t = 0; t < num_tokens; ++t) WriteOut(task, row, token + t, sums[t]);
    }
  }
}

template <class Block>
void Run(const QuantizedTask& task) {
#if HWY_TARGET == HWY_AVX3
  if (task.x->layout == IntegerLayout::kLanes) return RunByDots<Block>(task);
#endif
  RunPlainly<Block>(task);
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
