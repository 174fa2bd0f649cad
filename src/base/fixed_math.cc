#include "base/fixed_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvick {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Bits of a double: sign, 11 bits of exponent, 52 of mantissa.
constexpr int kMantissaBits = 52;
constexpr int64_t kExponentBias = 1023;
constexpr int64_t kInfinityExponent = 0x7ff;
constexpr uint64_t kMantissaMask = (uint64_t{1} << kMantissaBits) - 1;
constexpr uint64_t kHiddenBit = uint64_t{1} << kMantissaBits;

// ln 2 in two parts. The high one has 42 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42fefa3800p-1;
constexpr double kLn2Low = 0x1.ef35793c76730p-45;

// The unevaluated sum of two doubles, |low| at most half an ulp of high: some 106 bits. The
// algorithms are those of Dekker (1971) and Knuth (TAOCP 4.2.2), without fused operations.
struct DoubleDouble {
  double high;
  double low;
};

// REQUIRES: |a| >= |b|, or a == 0.
DoubleDouble FastTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The upper 26 bits and the rest. REQUIRES: |x| < 2^990.
DoubleDouble Split(double x) {
  const double scaled = x * 0x1.0000002p27;  // 2^27 + 1
  const double high = scaled - (scaled - x);
  return {high, x - high};
}

DoubleDouble TwoProduct(double a, double b) {
  const double product = a * b;
  const auto [a_high, a_low] = Split(a);
  const auto [b_high, b_low] = Split(b);
  const double error =
      ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  return {product, error};
}

DoubleDouble Add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = TwoSum(a.high, b.high);
  return FastTwoSum(high.high, high.low + (a.low + b.low));
}

DoubleDouble Multiply(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = TwoProduct(a.high, b.high);
  return FastTwoSum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

DoubleDouble Divide(double a, DoubleDouble b) {
  const double quotient = a / b.high;
  const DoubleDouble product = TwoProduct(quotient, b.high);
  const double rest = ((a - product.high) - product.low) - quotient * b.low;
  return FastTwoSum(quotient, rest / b.high);
}

// x * 2^exponent, rounded to nearest even where the result is subnormal: by integers, which no
// flushing of subnormals reaches. REQUIRES: x > 0 and normal.
double Scale(double x, int64_t exponent) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const int64_t scaled = static_cast<int64_t>(bits >> kMantissaBits) + exponent;
  const uint64_t mantissa = bits & kMantissaMask;
  if (scaled >= kInfinityExponent) return kInfinity;
  if (scaled > 0) {
    return std::bit_cast<double>((static_cast<uint64_t>(scaled) << kMantissaBits) | mantissa);
  }
  const int64_t shift = 1 - scaled;
  if (shift > kMantissaBits + 1) return 0;
  const uint64_t significand = mantissa | kHiddenBit;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t is_odd = (significand >> shift) & 1;
  return std::bit_cast<double>((significand + half - 1 + is_odd) >> shift);
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2: Taylor's series. The first term left out is below
// 2^-57 of the result. The products by pairs are shorter chains than Horner's.
double ExpTail(double r) {
  const double r2 = r * r, r4 = r2 * r2;
  const double c0 = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
  const double c4 = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
  const double c8 =
      (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
  return c0 + r4 * (c4 + r4 * c8);
}

// e^(x + low) = 2^k e^r, |r| <= ln(2) / 2. REQUIRES: |x| < 1000, |low| at most an ulp of x.
double ExpOfSum(double x, double low) {
  constexpr double kRounding = 0x1.8p52;  // added and subtracted: rounds to an integer
  const double k = (x * 0x1.71547652b82fep+0 + kRounding) - kRounding;  // x / ln 2
  const double high = x - k * kLn2High;                                 // exact
  const double correction = low - k * kLn2Low;
  const double r = high + correction;
  const double r_low = (high - r) + correction;
  const DoubleDouble one_plus_r = FastTwoSum(1, r);
  const double tail = r * r * ExpTail(r);
  return Scale(one_plus_r.high + (one_plus_r.low + (tail + r_low)), static_cast<int64_t>(k));
}

// x = 2^exponent m, m from sqrt(1/2) to sqrt(2).
struct Normalized {
  double exponent;
  double m;
};

// REQUIRES: 0 < x < infinity.
Normalized Normalize(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = -kExponentBias;
  if (bits < kHiddenBit) {  // subnormal
    const int shift = std::countl_zero(bits) - (63 - kMantissaBits);
    bits <<= shift;
    exponent += 1 - shift;
  } else {
    exponent += static_cast<int64_t>(bits >> kMantissaBits);
  }
  bits &= kMantissaMask;
  constexpr uint64_t kMantissaOfRootTwo = 0x6a09e667f3bcd;
  const int halved = bits >= kMantissaOfRootTwo ? 1 : 0;
  const auto m_exponent = static_cast<uint64_t>(kExponentBias - halved);
  return {static_cast<double>(exponent + halved),
          std::bit_cast<double>((m_exponent << kMantissaBits) | bits)};
}

// ln x = e ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), x = 2^e m, m from sqrt(1/2) to sqrt(2).
// REQUIRES: 0 < x < infinity. Some 90 bits; sixteen terms, of which the first left out is below
// 2^-80 of the first.
DoubleDouble LogOf(double x) {
  const auto [exponent, m] = Normalize(x);
  const DoubleDouble s = Divide(m - 1, TwoSum(m, 1));
  const DoubleDouble s2 = Multiply(s, s);
  DoubleDouble sum{0, 0};
  for (int k = 15; k >= 0; --k) {
    sum = Add(Multiply(sum, s2), Divide(2, {static_cast<double>(2 * k + 1), 0}));
  }
  return Add(FastTwoSum(exponent * kLn2High, exponent * kLn2Low), Multiply(s, sum));
}

}  // namespace

double FixedExp(double x) {
  if (std::isnan(x)) return kNan;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  return ExpOfSum(x, 0);
}

double FixedLog(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  if ((bits << 1) == 0) return -kInfinity;
  if (std::isnan(x) || (bits >> 63) != 0) return kNan;
  if (x == kInfinity) return kInfinity;
  const DoubleDouble log = LogOf(x);
  return log.high + log.low;
}

double FixedPow(double x, double y) {
  if ((std::bit_cast<uint64_t>(y) << 1) == 0 || x == 1) return 1;
  const double log = FixedLog(x);
  if (std::isnan(log) || std::isnan(y)) return kNan;
  const double product = y * log;
  // e^product is 0, 1 or infinity, or one of the factors is not finite.
  if (!(std::abs(product) > 0x1p-60 && std::abs(product) < 800)) return FixedExp(product);
  const DoubleDouble exact_log = LogOf(x);
  const DoubleDouble exact = TwoProduct(y, exact_log.high);
  return ExpOfSum(exact.high, exact.low + y * exact_log.low);
}

}  // namespace kvick
