#include "base/fma.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "base/flush_subnormals.h"

namespace kvick {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void ExpectSame(float a, float b, float c, float expected) {
  for (const float result : {FmaInSoftware(a, b, c), FusedMultiplyAdd(a, b, c)}) {
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(result)) << a << " * " << b << " + " << c;
    } else {
      ASSERT_EQ(Bits(result), Bits(expected)) << a << " * " << b << " + " << c;
    }
  }
}

// Any bits: all magnitudes, infinities, NaN. The addend is often close to the product, or half an
// ulp of it away, where rounding twice shows.
TEST(Fma, IsThatOfTheStandardLibrary) {
  std::mt19937 random(1);
  const auto any = [&] {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  for (int i = 0; i < 2'000'000; ++i) {
    const float a = any(), b = any();
    const float near =
        static_cast<float>(-static_cast<double>(a) * b * std::ldexp(1.0, i % 60 - 30));
    const float c = i % 3 == 0 ? any() : near;
    const float expected = std::fma(a, b, c);
    if (std::fpclassify(expected) == FP_SUBNORMAL) continue;  // rounded at another place
    ExpectSame(a, b, c, expected);
  }
}

// The product is half an ulp of the sum and a rest that a double does not hold: 1 - 2^-46 or
// 1 + 2^-36 beside 2^24.
TEST(Fma, RoundsOnceWhereRoundingTwiceIsWrong) {
  const float below = 16777218.0f;  // 2^24 + 2, of an odd significand
  ExpectSame(1 + 0x1p-23f, 1 - 0x1p-23f, below, below);
  ExpectSame(-1 - 0x1p-23f, 1 - 0x1p-23f, -below, -below);
  const float even = 0x1p24f;
  ExpectSame(1 + 0x1p-12f, 1 - 0x1p-12f + 0x1p-24f, even, even + 2);
  ExpectSame(-1 - 0x1p-12f, 1 - 0x1p-12f + 0x1p-24f, -even, -even - 2);
  ExpectSame(1, 1, even, even);  // a tie
  ExpectSame(1, 1, below, below + 2);
}

TEST(Fma, FlushesSubnormalsOnlyWhileAskedTo) {
  const float tiny = std::numeric_limits<float>::min();
  volatile float half = 0.5f;
  {
    const FlushSubnormals flush;
    ExpectSame(tiny, half, 0.0f, 0.0f);
    ExpectSame(tiny, half, -tiny, -0.0f);
    ExpectSame(tiny / 2, 1.0f, 1.0f, 1.0f);
  }
  EXPECT_EQ(FusedMultiplyAdd(tiny, half, 0.0f), 0x1p-127f);
}

}  // namespace
}  // namespace kvick
