// e^x for x <= 0, as softmax and SiLU need it. Compiled once per target.

#if defined(KVICK_BASE_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_EXP_INL_H_
#undef KVICK_BASE_EXP_INL_H_
#else
#define KVICK_BASE_EXP_INL_H_
#endif

#include <cstdint>

#include "base/fma-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// e^x for x <= 0, within 2 ulp; 0 where the result would be subnormal; NaN where x is NaN. Half the
// operations of Highway's Exp, which also turns NaN into 0 and would hide a read of an empty slot.
//
// x = n ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts; a polynomial for e^r. Adding 1.5 * 2^23
// rounds to an integer n, which then stands in the low bits.
//
// Source  the polynomial and the parts of ln 2 are those of Cephes expf
HWY_INLINE F32Vector ExpOfNonPositive(F32Vector x) {
  const F32Tag d;
  const hn::RebindToUnsigned<F32Tag> d32;
  const F32Vector to_integer = hn::Set(d, 12582912.0f);
  const F32Vector shifted = Fma(x, hn::Set(d, 1.44269504f), to_integer);
  const F32Vector n = hn::Sub(shifted, to_integer);
  F32Vector r = Fma(n, hn::Set(d, -0.693359375f), x);
  r = Fma(n, hn::Set(d, 2.12194440e-4f), r);
  F32Vector p = hn::Set(d, 1.9875691500e-4f);
  for (const float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = Fma(p, r, hn::Set(d, coefficient));
  }
  p = hn::Add(Fma(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto bits_of_one = hn::Set(d32, 0x3f800000u);
  const auto power_of_two = hn::Add(hn::ShiftLeft<23>(hn::BitCast(d32, shifted)), bits_of_one);
  constexpr float kLeast = -87.33654f;  // ln of the least normal number
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeast)),
                            hn::Mul(p, hn::BitCast(d, power_of_two)));
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
