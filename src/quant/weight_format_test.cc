#include "quant/weight_format.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "quant/q8_0.h"

namespace kvick {
namespace {

TEST(WeightFormat, IsFoundByTypeNameAndNumber) {
  for (const WeightFormat& format : AllWeightFormats()) {
    EXPECT_EQ(&FormatOf(format.type), &format);
    EXPECT_EQ(FindWeightFormat(format.name), &format);
    EXPECT_EQ(FindGgufWeightFormat(format.gguf_type), &format);
    if (format.dtype) {
      EXPECT_EQ(WeightTypeOf(*format.dtype), format.type);
      EXPECT_EQ(DTypeName(*format.dtype), format.name);
      EXPECT_EQ(DTypeBytes(*format.dtype), format.block_bytes);
    }
  }
  EXPECT_EQ(FindWeightFormat("Q8_0"), nullptr);
  EXPECT_EQ(FindGgufWeightFormat(24), nullptr);  // I8
}

TEST(WeightFormat, BytesOfARow) {
  EXPECT_EQ(WeightBytes(WeightType::kF32, 3), 12);
  EXPECT_EQ(WeightBytes(WeightType::kQ8_0, 64), 68);
  EXPECT_EQ(WeightBytes(WeightType::kQ8_0, 33), std::nullopt);
  EXPECT_EQ(WeightBytes(WeightType::kF32, std::numeric_limits<int64_t>::max() / 2), std::nullopt);
}

TEST(WeightFormat, Q8IsMultipliedOutExactly) {
  std::vector<std::byte> block(kQ8BlockBytes);
  block[1] = std::byte{0x38};  // f16 0.5
  for (int i = 0; i < 32; ++i)
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(i * 8 - 128));
  std::vector<float> values(32);
  DecodeWeights(WeightType::kQ8_0, block.data(), 32, values.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(values[i], 0.5f * (i * 8 - 128));
}

}  // namespace
}  // namespace kvick
