// The fixed order in which the lanes of a vector are summed. Compiled once per target.

#if defined(KVICK_BASE_SUM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_SUM_LANES_INL_H_
#undef KVICK_BASE_SUM_LANES_INL_H_
#else
#define KVICK_BASE_SUM_LANES_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {

// Halves the vector until one lane is left: lane i + lane (i + half). Highway's SumOfLanes leaves
// the order to the compiler's reduce intrinsic.
template <class D, class V>
HWY_INLINE hwy::HWY_NAMESPACE::TFromD<D> SumLanes([[maybe_unused]] D d, V v) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR  // which has no UpperHalf
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return SumLanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}

// Lane i of the result is SumLanes(v[i]), in the same bits: the additions are those of its tree.
// For sixteen lanes fifteen merges instead of sixteen trees: a third of the shuffles.
template <class D, class V>
HWY_INLINE V SumLanesOfEach([[maybe_unused]] D d, V (&v)[hwy::HWY_NAMESPACE::MaxLanes(D())]) {
#if HWY_TARGET != HWY_SCALAR
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr size_t kLanes = hn::MaxLanes(D());
  [[maybe_unused]] const hn::Repartition<double, D> d64;
  static_assert(kLanes == 16 || kLanes == 8 || kLanes == 4);
  for (size_t i = 0; i < kLanes / 2; ++i) {
    v[i] = hn::Add(hn::ConcatLowerLower(d, v[i + kLanes / 2], v[i]),
                   hn::ConcatUpperUpper(d, v[i + kLanes / 2], v[i]));
  }
  if constexpr (kLanes == 16) {  // halves of 256 bits
    for (size_t i = 0; i < 4; ++i) {
      v[i] = hn::Add(hn::OddEvenBlocks(v[i + 4], v[i]),
                     hn::SwapAdjacentBlocks(hn::OddEvenBlocks(v[i], v[i + 4])));
    }
  }
  if constexpr (kLanes >= 8) {  // pairs of lanes
    for (size_t i = 0; i < 2; ++i) {
      const auto a = hn::BitCast(d64, v[i]), b = hn::BitCast(d64, v[i + 2]);
      v[i] = hn::Add(hn::BitCast(d, hn::OddEven(b, a)),
                     hn::BitCast(d, hn::Shuffle01(hn::OddEven(a, b))));
    }
  }
  v[0] = hn::Add(hn::OddEven(v[1], v[0]), hn::Shuffle2301(hn::OddEven(v[0], v[1])));
#endif
  return v[0];
}

}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
