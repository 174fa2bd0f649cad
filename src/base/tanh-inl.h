// tanh x, as soft caps and the GELU need it. Compiled once per target.

#if defined(KVICK_BASE_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_TANH_INL_H_
#undef KVICK_BASE_TANH_INL_H_
#else
#define KVICK_BASE_TANH_INL_H_
#endif

#include "base/exp-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// tanh x, within 3 ulp; NaN where x is NaN.
//
// Of the magnitude, then with the sign of x: x + x^3 P(x^2) below 0.625, where the difference would
// lose digits; else 1 - 2e / (1 + e), e = e^-2x.
//
// Source  the polynomial is that of Cephes tanhf
HWY_INLINE F32Vector Tanh(F32Vector x) {
  const F32Tag d;
  const F32Vector one = hn::Set(d, 1.0f);
  const F32Vector magnitude = hn::Abs(x), square = hn::Mul(magnitude, magnitude);
  F32Vector p = hn::Set(d, -5.70498872745e-3f);
  for (const float coefficient :
       {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f}) {
    p = Fma(p, square, hn::Set(d, coefficient));
  }
  const F32Vector near_zero = Fma(hn::Mul(p, square), magnitude, magnitude);
  const F32Vector e = ExpOfNonPositive(hn::Mul(magnitude, hn::Set(d, -2.0f)));
  const F32Vector rest = hn::Div(hn::Add(e, e), hn::Add(one, e));
  const auto is_near = hn::Lt(magnitude, hn::Set(d, 0.625f));
  return hn::CopySign(hn::IfThenElse(is_near, near_zero, hn::Sub(one, rest)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
