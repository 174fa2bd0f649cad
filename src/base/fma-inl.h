// Fused multiply-add: a * b + c, rounded once, on every target. Compiled once per target.

#if defined(KVICK_BASE_FMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_FMA_INL_H_
#undef KVICK_BASE_FMA_INL_H_
#else
#define KVICK_BASE_FMA_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32Tag = hn::ScalableTag<float>;
using F32Vector = hn::Vec<F32Tag>;

#if HWY_TARGET == HWY_SCALAR && !defined(__aarch64__)

// In double, the product of two f32 is exact and the sum is rounded to 53 bits. Rounding that to 24
// bits differs from rounding once only if the 29 bits which are dropped say "exactly half": then
// the error of the sum decides the direction.
inline float FmaInDouble(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  double sum = product + addend;
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kHalf = uint64_t{1} << 28;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if ((bits & kDropped) == kHalf && std::isfinite(sum)) {
    const double of_addend = sum - product;
    const double error = (product - (sum - of_addend)) + (addend - of_addend);
    if (error != 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    sum = std::bit_cast<double>(bits);
  }
  return static_cast<float>(sum);
}

HWY_INLINE F32Vector Fma(F32Vector a, F32Vector b, F32Vector c) {
  return F32Vector(FmaInDouble(a.raw, b.raw, c.raw));
}

#elif HWY_TARGET == HWY_SCALAR

HWY_INLINE F32Vector Fma(F32Vector a, F32Vector b, F32Vector c) {
  return F32Vector(__builtin_fmaf(a.raw, b.raw, c.raw));
}

#else

HWY_INLINE F32Vector Fma(F32Vector a, F32Vector b, F32Vector c) { return hn::MulAdd(a, b, c); }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
