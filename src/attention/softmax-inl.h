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

#include "base/exp-inl.h"
#include "base/f32x16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// Slots of a chunk for one column.
struct SoftmaxRange {
  int64_t num_seen;   // where it is 0, max is -infinity and sum 0
  int64_t num_slots;  // at least num_seen
};

struct SoftmaxResult {
  float max, sum;
};

// max = max of scale * score over the seen slots, sum = sum of p[s] = exp(scale * score[s] - max),
// in sixteen lanes and then by a fixed tree. Calls store(p, s) for vectors of slots; p is 0 where a
// slot is not seen. `scores` holds num_slots numbers, rounded up to a multiple of 16, and is
// overwritten.
template <class Store>
HWY_INLINE SoftmaxResult Softmax(float* scores, const SoftmaxRange& range, float scale,
                                 Store&& store) {
  const F32Tag d;
  const F32Vector minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto seen = [&](int64_t s) {
    return hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, range.num_seen - s)));
  };
  F32Vector max = minus_infinity;
  for (int64_t s = 0; s < range.num_seen; s += kLanes) {
    const F32Vector score = hn::Mul(hn::Load(d, scores + s), hn::Set(d, scale));
    hn::Store(score, d, scores + s);
    max = hn::Max(max, hn::IfThenElse(seen(s), score, minus_infinity));
  }
  const F32Vector max_of_lanes = hn::MaxOfLanes(d, max);
  F32x16 sum = ZeroF32x16();
  for (int64_t first = 0; first < range.num_slots; first += 16) {
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t s = first + part * kLanes;
      const F32Vector x = hn::Sub(hn::Load(d, scores + s), max_of_lanes);
      const F32Vector p = hn::IfThenElseZero(seen(s), ExpOfNonPositive(x));
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
