#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvick {
namespace {

TEST(DType, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = F16ToF32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(value))));
    } else {
      ASSERT_EQ(F32ToF16(value), bits);
    }
  }
}

TEST(DType, EveryBF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BF16ToF32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(value))));
    } else {
      ASSERT_EQ(F32ToBF16(value), bits);
    }
  }
}

// Between two neighbours a and b: the middle goes to the even one, anything else to the nearer.
template <class ToF32, class FromF32>
void ExpectNearestEven(ToF32 to_f32, FromF32 from_f32, uint32_t last_finite) {
  for (uint32_t bits = 0; bits < last_finite; ++bits) {
    const double low = to_f32(static_cast<uint16_t>(bits));
    const double high = to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    const float below = std::nextafter(middle, -std::numeric_limits<float>::infinity());
    const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(from_f32(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(from_f32(below), bits);
    ASSERT_EQ(from_f32(above), bits + 1);
    ASSERT_EQ(from_f32(-middle), 0x8000u | (bits % 2 == 0 ? bits : bits + 1));
  }
}

TEST(DType, F16RoundsToNearestEven) { ExpectNearestEven(F16ToF32, F32ToF16, 0x7bff); }
TEST(DType, BF16RoundsToNearestEven) { ExpectNearestEven(BF16ToF32, F32ToBF16, 0x7f7f); }

TEST(DType, OverflowBecomesInfinity) {
  EXPECT_EQ(F32ToF16(65519.0f), 0x7bffu);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00u);
  EXPECT_EQ(F32ToF16(-1e30f), 0xfc00u);
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80u);
}

}  // namespace
}  // namespace kvick
