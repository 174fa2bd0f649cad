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

}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
