// Fused multiply-add: a * b + c, rounded once, on every target. Compiled once per target.

#if defined(KVICK_BASE_FMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_FMA_INL_H_
#undef KVICK_BASE_FMA_INL_H_
#else
#define KVICK_BASE_FMA_INL_H_
#endif

#include "base/fma.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32Tag = hn::ScalableTag<float>;
using F32Vector = hn::Vec<F32Tag>;

HWY_INLINE F32Vector Fma(F32Vector a, F32Vector b, F32Vector c) {
#if HWY_TARGET == HWY_SCALAR
  return F32Vector(FusedMultiplyAdd(a.raw, b.raw, c.raw));
#else
  return hn::MulAdd(a, b, c);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
