// The softmax of one column over the slots of a chunk. Compiled once per target.

#if defined(KVICK_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_ATTENTION_SOFTMAX_INL_H_
#undef KVICK_ATTENTION_SOFTMAX_INL_H_
#else
#define KVICK_ATTENTION_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/attention_kernel.h"
#include "base/checked_math.h"
#include "base/exp-inl.h"
#include "base/f32x16-inl.h"
#include "base/tanh-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// Slots of a chunk for one column.
struct SoftmaxRange {
  SlotRange seen;   // where it is empty, max is -infinity and sum 0
  SlotRange slots;  // holds `seen`; begin is a multiple of 16
};

struct SoftmaxResult {
  float max, sum;
};

template <bool kHasSoftCap>
HWY_INLINE F32Vector ScoreOf(F32Vector dot, const ScoreScale& scale) {
  const F32Tag d;
  const F32Vector x = hn::Mul(dot, hn::Set(d, scale.factor));
  return kHasSoftCap ? hn::Mul(Tanh(x), hn::Set(d, scale.soft_cap)) : x;
}

// Replaces the dot products of the seen slots by their scores, and returns the maximum of each
// lane.
template <bool kHasSoftCap, class Seen>
HWY_INLINE F32Vector MaxOfScores(float* scores, SlotRange seen, const ScoreScale& scale,
                                 Seen&& is_seen) {
  const F32Tag d;
  const F32Vector minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  F32Vector max = minus_infinity;
  for (int64_t s = RoundDown(seen.begin, 16); s < seen.end; s += kLanes) {
    const F32Vector score = ScoreOf<kHasSoftCap>(hn::Load(d, scores + s), scale);
    hn::Store(score, d, scores + s);
    max = hn::Max(max, hn::IfThenElse(is_seen(s), score, minus_infinity));
  }
  return max;
}

// max = max of score[s] over the seen slots, sum = sum of p[s] = exp(score[s] - max), in sixteen
// lanes and then by a fixed tree. Calls store(p, s) for vectors of slots; p is 0 where a slot is
// not seen. `scores` holds dot products up to slots.end, rounded up to a multiple of 16, and is
// overwritten.
template <class Store>
HWY_INLINE SoftmaxResult Softmax(float* scores, const SoftmaxRange& range, const ScoreScale& scale,
                                 Store&& store) {
  const F32Tag d;
  const auto first_slots = [&](int64_t num) {
    return hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, num)));
  };
  const auto is_seen = [&](int64_t s) {
    return hn::AndNot(first_slots(range.seen.begin - s), first_slots(range.seen.end - s));
  };
  const F32Vector max = scale.soft_cap > 0 ? MaxOfScores<true>(scores, range.seen, scale, is_seen)
                                           : MaxOfScores<false>(scores, range.seen, scale, is_seen);
  const F32Vector max_of_lanes = hn::MaxOfLanes(d, max);
  F32x16 sum = ZeroF32x16();
  for (int64_t first = range.slots.begin; first < range.slots.end; first += 16) {
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t s = first + part * kLanes;
      const F32Vector x = hn::Sub(hn::Load(d, scores + s), max_of_lanes);
      const F32Vector p = hn::IfThenElseZero(is_seen(s), ExpOfNonPositive(x));
      store(p, s);
      sum.part[part] = hn::Add(sum.part[part], p);
    }
  }
  return {hn::GetLane(max_of_lanes), SumLanes(sum)};
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
