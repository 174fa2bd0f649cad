// Linear with quantized weights by products of 16-bit integers, on any processor: VPMADDWD on x86,
// SMLAL on Arm. The codes of a step are unpacked into the L1 cache, once for up to sixteen tokens.

#if defined(KVICK_OPS_QUANTIZED_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_WORDS_INL_H_
#undef KVICK_OPS_QUANTIZED_WORDS_INL_H_
#else
#define KVICK_OPS_QUANTIZED_WORDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "base/f32x16-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear_quantized.h"
#include "ops/quantized_blocks-inl.h"
#include "ops/quantized_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// A sub-block of sixteen columns is at least one vector.
using WordTag = hn::CappedTag<int16_t, 16>;
using WordSumTag = hn::RepartitionToWide<WordTag>;

// Bytes to words.
HWY_INLINE void WidenCodes(const uint8_t* bytes, int64_t num, int16_t* words) {
  const WordTag d;
  const hn::Rebind<uint8_t, WordTag> d8;
  for (int64_t i = 0; i < num; i += static_cast<int64_t>(hn::Lanes(d))) {
    hn::Store(hn::PromoteTo(d, hn::LoadU(d8, bytes + i)), d, words + i);
  }
}

// Lanes of it add up to sum of codes[i] * a[i], for i in [0, kNum).
template <int64_t kNum>
HWY_INLINE hn::Vec<WordSumTag> MultiplyWords(const int16_t* codes, const int16_t* a) {
  const WordTag d;
  const WordSumTag d32;
  auto sum = hn::Zero(d32), more = hn::Zero(d32);
  for (int64_t i = 0; i < kNum; i += static_cast<int64_t>(hn::Lanes(d))) {
    sum = hn::ReorderWidenMulAccumulate(d32, hn::Load(d, codes + i), hn::Load(d, a + i), sum, more);
  }
  return hn::Add(sum, more);
}

// The exact sums of sixteen sub-blocks.
template <int64_t kSubColumns>
HWY_INLINE void SumWords(const int16_t* codes, const int16_t* a, int32_t* sums) {
  const WordSumTag d;
  constexpr int64_t kVectorLanes = hn::MaxLanes(WordSumTag());
  for (int64_t sub = 0; sub < 16; sub += kVectorLanes) {
    hn::Vec<WordSumTag> lanes[kVectorLanes];
    for (int64_t i = 0; i < kVectorLanes; ++i) {
      const int64_t first = (sub + i) * kSubColumns;
      lanes[i] = MultiplyWords<kSubColumns>(codes + first, a + first);
    }
    hn::Store(SumLanesOfEach(d, lanes), d, sums + sub);
  }
}

template <class Block>
struct WordStep {
  static constexpr QuantizedShape kShape = Block::kShape;
  alignas(64) int16_t codes[kShape.step_columns()];
  alignas(64) float scales[16];
  alignas(64) float minimums[16];

  HWY_INLINE void Load(const uint8_t* step) {
    constexpr int64_t kBlockSubs = kShape.block_columns / kShape.sub_columns;
    constexpr int64_t kAheadBytes = 4096;
    alignas(64) uint8_t bytes[kShape.block_columns];
    for (int64_t line = 0; line < kShape.step_bytes(); line += 64) {
      hwy::Prefetch(step + kAheadBytes + line);
    }
    for (int64_t block = 0; block < kShape.step_blocks(); ++block) {
      Block::Codes(step + block * kShape.block_bytes, bytes);
      WidenCodes(bytes, kShape.block_columns, codes + block * kShape.block_columns);
      Block::Scales(step + block * kShape.block_bytes, scales + block * kBlockSubs,
                    minimums + block * kBlockSubs);
    }
  }

  HWY_INLINE void AddTo(const std::byte* x, F32x16& sums) const {
    alignas(64) int32_t ints[16];
    SumWords<kShape.sub_columns>(codes, reinterpret_cast<const int16_t*>(x), ints);
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
void RunByWords(const QuantizedTask& task) {
  constexpr QuantizedShape kShape = Block::kShape;
  constexpr int64_t kBlockTokens = 16;
  const LinearArgs& args = *task.args;
  const int64_t num_blocks = args.w.num_cols / kShape.block_columns;
  uint8_t tail[kShape.step_bytes()];
  WordStep<Block> step;
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

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
