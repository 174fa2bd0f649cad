#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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

TEST(DType, RowBytes) {
  EXPECT_EQ(DTypeRowBytes(DType::kF32, 3), 12);
  EXPECT_EQ(DTypeRowBytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(DTypeRowBytes(DType::kQ8_0, 33), std::nullopt);
  EXPECT_EQ(DTypeRowBytes(DType::kF32, std::numeric_limits<int64_t>::max() / 2), std::nullopt);
}

TEST(DType, Q8IsMultipliedOutExactly) {
  std::vector<std::byte> block(kQ8BlockBytes);
  block[0] = std::byte{0x00};
  block[1] = std::byte{0x38};  // f16 0.5
  for (int i = 0; i < 32; ++i)
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(i * 8 - 128));
  std::vector<float> values(32);
  ConvertToF32(DType::kQ8_0, block.data(), 32, values.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], 0.5f * (i * 8 - 128));
}

}  // namespace
}  // namespace kvick
