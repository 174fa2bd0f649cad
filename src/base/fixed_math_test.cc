#include "base/fixed_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "base/hash_of_bits_testing.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kvick {
namespace {

using testing::HashOfBits;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kNormal = std::numeric_limits<double>::min();

// Arguments made of the bits of a generator that the C++ standard specifies, with exact arithmetic:
// the same on every machine.
class Arguments {
 public:
  // Any finite double, of either sign.
  double OfAnyExponent() {
    const uint64_t bits = random_();
    const uint64_t exponent = (bits >> 52) % 2047;
    return std::bit_cast<double>((bits & 0x800fffffffffffffull) | (exponent << 52));
  }

  // |x| from 2^low to 2^high, every exponent as often, either sign.
  double OfExponents(int low, int high) {
    const auto num = static_cast<uint64_t>(high - low);
    const auto exponent = static_cast<int64_t>(random_() % num) + low;
    const uint64_t bits = random_();
    return std::bit_cast<double>((bits & 0x800fffffffffffffull) |
                                 (static_cast<uint64_t>(1023 + exponent) << 52));
  }

  double Between(double low, double high) {
    return low + (high - low) * (static_cast<double>(random_() >> 11) * 0x1p-53);
  }

 private:
  std::mt19937_64 random_{20250101};
};

// The distance in units in the last place that a double of the size of `expected` has.
double UlpsFrom(long double expected, double value) {
  const auto rounded = static_cast<double>(expected);
  if (!std::isfinite(rounded) || !std::isfinite(value)) return value == rounded ? 0 : kInfinity;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs((value - expected) / ulp));
}

constexpr int kNum = 60'000;

// The references are functions of long double, which must hold more bits than a double.
static_assert(LDBL_MANT_DIG >= 64);

TEST(FixedMath, ExpIsNearTheReference) {
  Arguments arguments;
  double worst = 0, worst_subnormal = 0;
  for (int i = 0; i < kNum; ++i) {
    for (const double x : {arguments.Between(-708, 709.78), arguments.Between(-1, 1),
                           arguments.OfExponents(-60, 9)}) {
      worst = std::max(worst, UlpsFrom(std::exp(static_cast<long double>(x)), FixedExp(x)));
    }
    const double low = arguments.Between(-746, -708.4);
    worst_subnormal =
        std::max(worst_subnormal, UlpsFrom(std::exp(static_cast<long double>(low)), FixedExp(low)));
  }
  EXPECT_LT(worst, 0.71);
  EXPECT_LT(worst_subnormal, 0.8);
}

TEST(FixedMath, LogIsNearTheReference) {
  Arguments arguments;
  double worst = 0;
  for (int i = 0; i < kNum / 3; ++i) {
    for (const double x : {std::abs(arguments.OfAnyExponent()), arguments.Between(0.5, 2),
                           1 + arguments.OfExponents(-52, -1)}) {
      worst = std::max(worst, UlpsFrom(std::log(static_cast<long double>(x)), FixedLog(x)));
    }
  }
  EXPECT_LT(worst, 0.501);
}

// In braces, which are evaluated in order, so that every compiler has the same arguments.
struct BaseAndExponent {
  double x;
  double y;
};

TEST(FixedMath, PowIsNearTheReference) {
  Arguments arguments;
  double worst = 0, worst_subnormal = 0;
  const auto compare = [&](BaseAndExponent of) {
    const auto [x, y] = of;
    const long double expected = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    double& worst_of_kind = expected < kNormal ? worst_subnormal : worst;
    worst_of_kind = std::max(worst_of_kind, UlpsFrom(expected, FixedPow(x, y)));
  };
  for (int i = 0; i < kNum / 3; ++i) {
    compare({arguments.Between(1, 1e6), arguments.Between(-1, 0)});  // RoPE
    compare({std::abs(arguments.OfAnyExponent()), arguments.Between(-2, 2)});
    compare({1 + arguments.OfExponents(-30, -1), arguments.OfExponents(-10, 30)});
  }
  EXPECT_LT(worst, 0.71);
  EXPECT_LT(worst_subnormal, 0.8);
}

TEST(FixedMath, SinCosIsNearTheReference) {
  Arguments arguments;
  double worst = 0;
  const auto compare = [&](double x) {
    const SinAndCos value = FixedSinCos(x);
    worst = std::max(worst, UlpsFrom(std::sin(static_cast<long double>(x)), value.sin));
    worst = std::max(worst, UlpsFrom(std::cos(static_cast<long double>(x)), value.cos));
  };
  for (int i = 0; i < kNum; ++i) {
    compare(arguments.Between(-7, 7));
    compare(arguments.OfExponents(-40, 40));
    compare(arguments.OfAnyExponent());
    compare(static_cast<double>(i) * std::numbers::pi / 4);
  }
  // The double nearest to a multiple of pi / 2, by 2^-61; the largest one; the ends of a reduction.
  for (const double x : {0x1.6ac5b262ca1ffp+849, kLargest, 0x1.921fb54442d18p-1,
                         0x1.921fb54442d19p-1, 0x1p-27, 0x1.fffffffffffffp-28}) {
    compare(x);
    compare(-x);
  }
  EXPECT_LT(worst, 0.84);
}

bool IsOneNan(double x) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(kNan); }

TEST(FixedMath, ExpAndLogOfEdges) {
  for (const double x : {0.0, -0.0, kSmallest, -kNormal, 0x1p-54}) EXPECT_EQ(FixedExp(x), 1);
  EXPECT_EQ(FixedExp(kInfinity), kInfinity);
  EXPECT_EQ(FixedExp(709.782712893384), 0x1.fffffffffff2ap+1023);
  for (const double x : {709.7827128933841, 710.5, kLargest}) EXPECT_EQ(FixedExp(x), kInfinity);
  EXPECT_EQ(FixedExp(-745.1332191019411), kSmallest);
  for (const double x : {-745.1332191019412, -746.5, -kLargest, -kInfinity}) {
    EXPECT_EQ(FixedExp(x), 0);
  }
  EXPECT_EQ(std::bit_cast<uint64_t>(FixedLog(1)), 0u);
  EXPECT_EQ(FixedLog(0.0), -kInfinity);
  EXPECT_EQ(FixedLog(-0.0), -kInfinity);
  EXPECT_EQ(FixedLog(kInfinity), kInfinity);
  for (const double x : {kNan, -kNan}) {
    EXPECT_TRUE(IsOneNan(FixedExp(x)));
    EXPECT_TRUE(IsOneNan(FixedLog(x)));
  }
  for (const double x : {-kSmallest, -1.0, -kInfinity}) EXPECT_TRUE(IsOneNan(FixedLog(x)));
}

TEST(FixedMath, PowOfEdges) {
  for (const double x : {0.0, -0.0, -1.0, kInfinity, kNan}) EXPECT_EQ(FixedPow(x, 0), 1);
  for (const double y : {kInfinity, -kInfinity, kLargest, kSmallest, kNan}) {
    EXPECT_EQ(FixedPow(1, y), 1);
  }
  for (const double zero : {0.0, -0.0}) {
    EXPECT_EQ(FixedPow(zero, 0.5), 0);
    EXPECT_EQ(FixedPow(zero, -0.5), kInfinity);
  }
  EXPECT_EQ(FixedPow(kInfinity, 2), kInfinity);
  EXPECT_EQ(FixedPow(kInfinity, -2), 0);
  EXPECT_EQ(FixedPow(0.5, kInfinity), 0);
  EXPECT_EQ(FixedPow(0.5, -kInfinity), kInfinity);
  EXPECT_EQ(FixedPow(2, kLargest), kInfinity);
  EXPECT_EQ(FixedPow(2, -1074), kSmallest);
  EXPECT_EQ(FixedPow(kSmallest, 0.5), 0x1p-537);
  EXPECT_EQ(FixedPow(10000, -0.5), 0.01);
  EXPECT_EQ(FixedPow(2, kSmallest), 1);
  EXPECT_TRUE(IsOneNan(FixedPow(2, kNan)));
  EXPECT_TRUE(IsOneNan(FixedPow(-kNan, 2)));
  EXPECT_TRUE(IsOneNan(FixedPow(-2, 2)));
}

TEST(FixedMath, SinCosOfEdges) {
  for (const double x : {0.0, -0.0, kSmallest, -kSmallest, kNormal, -0x1p-28}) {
    const SinAndCos value = FixedSinCos(x);
    EXPECT_EQ(std::bit_cast<uint64_t>(value.sin), std::bit_cast<uint64_t>(x));
    EXPECT_EQ(value.cos, 1);
  }
  for (const double x : {kInfinity, -kInfinity, kNan, -kNan}) {
    EXPECT_TRUE(IsOneNan(FixedSinCos(x).sin));
    EXPECT_TRUE(IsOneNan(FixedSinCos(x).cos));
  }
}

struct Results {
  std::vector<double> exp, log, pow, sin_cos;
};

Results ResultsOf(const std::vector<double>& arguments) {
  Results results;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const double x = arguments[i], positive = std::abs(x);
    results.exp.push_back(FixedExp(x));
    results.log.push_back(FixedLog(positive));
    results.pow.push_back(FixedPow(positive, arguments[(i + 1) % arguments.size()]));
    const SinAndCos value = FixedSinCos(x);
    results.sin_cos.insert(results.sin_cos.end(), {value.sin, value.cos});
  }
  return results;
}

std::vector<double> RecordedArguments() {
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                kSmallest,
                                -kSmallest,
                                kNormal,
                                kLargest,
                                kInfinity,
                                kNan,
                                0x1.6ac5b262ca1ffp+849};
  Arguments arguments;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(arguments.OfAnyExponent());
    values.push_back(arguments.OfExponents(-60, 40));
    values.push_back(arguments.Between(-746, 710));
    values.push_back(arguments.Between(-7, 7));
  }
  return values;
}

void ExpectRecordedBits(const Results& results) {
  EXPECT_EQ(HashOfBits(results.exp), 3365671862112531967u);
  EXPECT_EQ(HashOfBits(results.log), 4227244088230344881u);
  EXPECT_EQ(HashOfBits(results.pow), 13831072101492972264u);
  EXPECT_EQ(HashOfBits(results.sin_cos), 5131256382464116413u);
}

// Recorded on x86-64 with GCC. Another hash means other numbers: a new version of the numerics.
TEST(FixedMath, HasTheRecordedBits) { ExpectRecordedBits(ResultsOf(RecordedArguments())); }

// Makes the processor take subnormals as zero while it lives, as kernels do.
class SubnormalsFlushed {
 public:
#if defined(__x86_64__)
  SubnormalsFlushed() : state_(_mm_getcsr()) { _mm_setcsr(state_ | 0x8040); }  // FTZ, DAZ
  ~SubnormalsFlushed() { _mm_setcsr(state_); }

 private:
  unsigned state_;
#elif defined(__aarch64__)
  SubnormalsFlushed() {
    asm volatile("mrs %0, fpcr" : "=r"(state_));
    asm volatile("msr fpcr, %0" : : "r"(state_ | (uint64_t{1} << 24)));  // FZ
  }
  ~SubnormalsFlushed() { asm volatile("msr fpcr, %0" : : "r"(state_)); }

 private:
  uint64_t state_ = 0;
#endif
};

TEST(FixedMath, HasTheRecordedBitsWhereSubnormalsAreFlushed) {
  const std::vector<double> arguments = RecordedArguments();
  Results results;
  {
    const SubnormalsFlushed flushed;
    results = ResultsOf(arguments);
  }
  ExpectRecordedBits(results);
}

}  // namespace
}  // namespace kvick
