// e^x as a softmax needs it. Compiled once per target.

#if defined(KVICK_ATTENTION_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_ATTENTION_EXP_INL_H_
#undef KVICK_ATTENTION_EXP_INL_H_
#else
#define KVICK_ATTENTION_EXP_INL_H_
#endif

#include <cstdint>

#include "base/simd_load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// e^x for x <= 0, within 2 ulp; 0 where the result would be denormal; NaN where x is NaN. Half the
// operations of Highway's Exp, which also turns NaN into 0 and would hide a read of an empty slot.
//
// Source  Cephes expf: x = n ln 2 + r, |r| <= ln 2 / 2, ln 2 in two parts; a polynomial for e^r
HWY_INLINE F32Vector ExpOfNonPositive(F32Vector x) {
  const F32Tag d;
  const hn::RebindToSigned<F32Tag> d32;
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const F32Vector n_float = hn::ConvertTo(d, n);
  F32Vector r = hn::NegMulAdd(n_float, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n_float, hn::Set(d, -2.12194440e-4f), r);
  F32Vector p = hn::Set(d, 1.9875691500e-4f);
  for (const float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = hn::MulAdd(p, r, hn::Set(d, coefficient));
  }
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto power_of_two = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(d32, 127))));
  constexpr float kLeast = -87.33654f;  // ln of the least normal number
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeast)), hn::Mul(p, power_of_two));
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
