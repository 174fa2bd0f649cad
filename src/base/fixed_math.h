#ifndef KVICK_BASE_FIXED_MATH_H_
#define KVICK_BASE_FIXED_MATH_H_

namespace kvick {

// Elementary functions whose results are the same bits on every machine and with every compiler.
// Those of the C library differ between libraries and between processors. These use only what
// IEEE 754 rounds correctly (+, -, *, /, in the order written), integer arithmetic and bit casts.
//
// Accuracy  below 1 ulp. Largest error of the test's arguments: FixedLog 0.501, FixedSinCos 0.84,
//           FixedExp and FixedPow 0.70 (0.78 where the result is subnormal)
// Results   a NaN is always the positive quiet one; subnormal arguments and results are exact or
//           correctly scaled even where the processor flushes subnormals to zero
// Requires  round to nearest;  -ffp-contract=off, never -ffast-math

// e^x.
double FixedExp(double x);

// The natural logarithm. -infinity for 0, NaN below 0.
double FixedLog(double x);

// x^y for x >= 0. NaN below 0, for any y but 0.
double FixedPow(double x, double y);

struct SinAndCos {
  double sin;
  double cos;
};

// Of an angle in radians. Every finite angle is reduced exactly, so that the largest double is as
// accurate as 1. NaN for an infinity.
SinAndCos FixedSinCos(double x);

}  // namespace kvick

#endif  // KVICK_BASE_FIXED_MATH_H_
