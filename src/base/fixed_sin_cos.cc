#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/fixed_math.h"

namespace kvick {
namespace {

using Uint128 = unsigned __int128;
using Int128 = __int128;

// 64 zero bits, then 2 / pi from its first bit behind the binary point, computed with 2,000 bits of
// precision and truncated. Enough for the largest double, whose last bit weighs 2^971: the test's
// angles of every exponent would show a wrong bit.
constexpr uint64_t kTwoOverPi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

// pi / 2 in two parts. The upper one has 25 bits.
constexpr double kHalfPiHigh = 0x1.921fb50000000p+0;
constexpr double kHalfPiLow = 0x1.110b4611a6263p-26;
constexpr double kHalfPi = 0x1.921fb54442d18p+0;

// x = quadrant * pi / 2 + high + low, |high| <= pi / 4; whole turns are left out.
struct ReducedAngle {
  uint64_t quadrant;
  double high;
  double low;
};

// |x| in quarter turns, modulo 4, in units of 2^-126: x times the bits of 2 / pi that matter. Bits
// before them would add multiples of 4; those behind them add below 2^-126.
Uint128 QuarterTurns(uint64_t abs_bits) {
  constexpr int kMantissaBits = 52;
  constexpr uint64_t kHiddenBit = uint64_t{1} << kMantissaBits;
  const uint64_t significand = (abs_bits & (kHiddenBit - 1)) | kHiddenBit;
  // The last bit of the significand weighs 2^q. The first bit that matters is that of 2^(1 - q).
  const int64_t q = static_cast<int64_t>(abs_bits >> kMantissaBits) - 1023 - kMantissaBits;
  const auto first_bit = static_cast<uint64_t>(q + 62);
  const uint64_t* words = kTwoOverPi + first_bit / 64;
  const auto shift = static_cast<int>(first_bit % 64);
  const auto word = [&](int i) {
    return (words[i] << shift) | (words[i + 1] >> 1 >> (63 - shift));
  };
  return (Uint128{significand * word(0)} << 64) + Uint128{significand} * word(1) +
         ((Uint128{significand} * word(2)) >> 64);
}

// REQUIRES: pi / 4 < |x| < infinity. No double is nearer than 2^-62 quarter turns to a multiple of
// one, so that at least 64 of the bits count.
ReducedAngle Reduce(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t sign = bits & (uint64_t{1} << 63);
  const Uint128 turns = QuarterTurns(bits ^ sign);
  const auto quadrant = static_cast<uint64_t>((turns + (Uint128{1} << 125)) >> 126);
  const auto fraction = static_cast<Int128>(turns - (Uint128{quadrant} << 126));
  const bool is_negative = fraction < 0;
  const Uint128 magnitude =
      is_negative ? -static_cast<Uint128>(fraction) : static_cast<Uint128>(fraction);
  const int num_zeros = std::countl_zero(static_cast<uint64_t>(magnitude >> 64));
  const Uint128 aligned = magnitude << num_zeros;
  // The upper 26 bits times kHalfPiHigh are exact; 53 bits more follow.
  const uint64_t scale_bits = (static_cast<uint64_t>(1023 + 2 - num_zeros) << 52) | sign;
  const double scale =
      is_negative ? -std::bit_cast<double>(scale_bits) : std::bit_cast<double>(scale_bits);
  const auto top = static_cast<int64_t>(aligned >> 102);
  const auto next = static_cast<int64_t>((aligned >> 49) & ((uint64_t{1} << 53) - 1));
  const double upper = static_cast<double>(top) * 0x1p-26 * scale;
  const double lower = static_cast<double>(next) * 0x1p-79 * scale;
  const double product = upper * kHalfPiHigh;
  const double rest = upper * kHalfPiLow + lower * kHalfPi;
  const double high = product + rest;
  return {sign == 0 ? quadrant : -quadrant, high, (product - high) + rest};
}

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 for r2 = r^2, |r| <= pi / 4: Taylor's series.
// The first terms left out are below 2^-62 and 2^-58.
double SinTail(double r2) {
  const double r4 = r2 * r2;
  const double c0 = (-1.0 / 6 + r2 * (1.0 / 120)) + r4 * (-1.0 / 5040 + r2 * (1.0 / 362880));
  const double c4 = (-1.0 / 39916800 + r2 * (1.0 / 6227020800.0)) +
                    r4 * (-1.0 / 1307674368000.0 + r2 * (1.0 / 355687428096000.0));
  return c0 + (r4 * r4) * c4;
}

double CosTail(double r2) {
  const double r4 = r2 * r2;
  const double c0 = (1.0 / 24 + r2 * (-1.0 / 720)) + r4 * (1.0 / 40320 + r2 * (-1.0 / 3628800));
  const double c4 = (1.0 / 479001600 + r2 * (-1.0 / 87178291200.0)) + r4 * (1.0 / 20922789888000.0);
  return c0 + (r4 * r4) * c4;
}

// Of high + low, |high| <= pi / 4: sin = r + (r^3 S + low (1 - r^2 / 2)),
// cos = (1 - r^2 / 2) + (r^4 C - r low).
SinAndCos OfReduced(double r, double low) {
  const double r2 = r * r, half_r2 = 0.5 * r2;
  const double sin = r + (r * r2 * SinTail(r2) + low * (1 - half_r2));
  const double upper = 1 - half_r2;
  const double cos = upper + (((1 - upper) - half_r2) + (r2 * r2 * CosTail(r2) - r * low));
  return {sin, cos};
}

double NegateIf(uint64_t condition, double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) ^ (condition << 63));
}

}  // namespace

SinAndCos FixedSinCos(double x) {
  const double magnitude = std::abs(x);
  if (magnitude < 0x1p-27) return {x, 1};
  if (magnitude <= kHalfPi / 2) return OfReduced(x, 0);
  if (!(magnitude <= std::numeric_limits<double>::max())) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan};
  }
  const ReducedAngle angle = Reduce(x);
  const SinAndCos of_rest = OfReduced(angle.high, angle.low);
  // By bits: a branch on the quadrant would be mispredicted half of the time.
  const uint64_t is_odd = angle.quadrant & 1, swap = -is_odd;
  const auto sin_bits = std::bit_cast<uint64_t>(of_rest.sin);
  const auto cos_bits = std::bit_cast<uint64_t>(of_rest.cos);
  const uint64_t difference = (sin_bits ^ cos_bits) & swap;
  const double sin = std::bit_cast<double>(sin_bits ^ difference);
  const double cos = std::bit_cast<double>(cos_bits ^ difference);
  return {NegateIf((angle.quadrant >> 1) & 1, sin), NegateIf(((angle.quadrant + 1) >> 1) & 1, cos)};
}

}  // namespace kvick
