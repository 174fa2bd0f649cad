#include "quant/weight_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/same_bits.h"

namespace kvick {
namespace {

// A block as numbers: one weight at a time, straight from the definition of its format in ggml's
// ggml-common.h. Independent of the code under test, which takes whole blocks apart.
class Block {
 public:
  explicit Block(const std::byte* data) : data_(reinterpret_cast<const uint8_t*>(data)) {}

  int u8(int at) const { return data_[at]; }
  int i8(int at) const { return static_cast<int8_t>(data_[at]); }
  double f16(int at) const { return F16ToF32(static_cast<uint16_t>(bits(8 * at, 16))); }
  // `num` bits from bit `first` of the block on, the lowest first.
  uint32_t bits(int first, int num) const {
    uint32_t value = 0;
    for (int i = 0; i < num; ++i) {
      const int at = first + i;
      value |= static_cast<uint32_t>(data_[at / 8] >> (at % 8) & 1) << i;
    }
    return value;
  }
  int nibble(int at, bool high) const { return static_cast<int>(bits(8 * at + (high ? 4 : 0), 4)); }

 private:
  const uint8_t* data_;
};

constexpr int kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Scale or minimum j of 6 bits in the twelve bytes from `at` on: the first eight bytes have four
// scales and four minimums, whose upper two bits belong to the others.
int SixBits(const Block& b, int at, int j, bool is_minimum) {
  const int first = at + (is_minimum ? 4 : 0) + j % 4;
  if (j < 4) return static_cast<int>(b.bits(8 * first, 6));
  return b.nibble(at + 8 + j % 4, is_minimum) + 16 * static_cast<int>(b.bits(8 * first + 6, 2));
}

// Bits of weight i of Q2_K and Q3_K: 32 weights a layer of two bits, four layers in 32 bytes.
int TwoBits(const Block& b, int at, int i) {
  const int byte = at + 32 * (i / 128) + i % 32, layer = i % 128 / 32;
  return static_cast<int>(b.bits(8 * byte + 2 * layer, 2));
}

int Q3Scale(const Block& b, int j) {
  const int low = b.nibble(96 + j % 8, j >= 8);
  return low + 16 * static_cast<int>(b.bits(8 * (104 + j % 4) + 2 * (j / 4), 2)) - 32;
}

int Q6Code(const Block& b, int i) {
  const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
  const int low = b.nibble(64 * half + 32 * (quarter % 2) + l, quarter >= 2);
  return low + 16 * static_cast<int>(b.bits(8 * (128 + 32 * half + l) + 2 * quarter, 2)) - 32;
}

double Q4Weight(const Block& b, int i, int at) { return b.nibble(at + i % 16, i >= 16); }

using Reference = double (*)(const Block&, int);

const std::map<WeightType, Reference>& References() {
  static const std::map<WeightType, Reference> references{
      {WeightType::kQ4_0, [](const Block& b, int i) { return b.f16(0) * (Q4Weight(b, i, 2) - 8); }},
      {WeightType::kQ4_1,
       [](const Block& b, int i) { return b.f16(0) * Q4Weight(b, i, 4) + b.f16(2); }},
      {WeightType::kQ5_0,
       [](const Block& b, int i) {
         return b.f16(0) * (Q4Weight(b, i, 6) + 16.0 * b.bits(16 + i, 1) - 16);
       }},
      {WeightType::kQ5_1,
       [](const Block& b, int i) {
         return b.f16(0) * (Q4Weight(b, i, 8) + 16.0 * b.bits(32 + i, 1)) + b.f16(2);
       }},
      {WeightType::kQ8_0, [](const Block& b, int i) { return b.f16(0) * b.i8(2 + i); }},
      {WeightType::kQ2_K,
       [](const Block& b, int i) {
         return b.f16(80) * b.nibble(i / 16, false) * TwoBits(b, 16, i) -
                b.f16(82) * b.nibble(i / 16, true);
       }},
      {WeightType::kQ3_K,
       [](const Block& b, int i) {
         const int high = static_cast<int>(b.bits(8 * (i % 32) + i / 32, 1));
         return b.f16(108) * Q3Scale(b, i / 16) * (TwoBits(b, 32, i) - (high == 1 ? 0 : 4));
       }},
      {WeightType::kQ4_K,
       [](const Block& b, int i) {
         const int code = b.nibble(16 + 32 * (i / 64) + i % 32, i % 64 >= 32);
         return b.f16(0) * SixBits(b, 4, i / 32, false) * code -
                b.f16(2) * SixBits(b, 4, i / 32, true);
       }},
      {WeightType::kQ5_K,
       [](const Block& b, int i) {
         const int low = b.nibble(48 + 32 * (i / 64) + i % 32, i % 64 >= 32);
         const int code = low + 16 * static_cast<int>(b.bits(8 * (16 + i % 32) + i / 32, 1));
         return b.f16(0) * SixBits(b, 4, i / 32, false) * code -
                b.f16(2) * SixBits(b, 4, i / 32, true);
       }},
      {WeightType::kQ6_K,
       [](const Block& b, int i) { return b.f16(208) * b.i8(192 + i / 16) * Q6Code(b, i); }},
      {WeightType::kIQ4_NL,
       [](const Block& b, int i) { return b.f16(0) * kIq4[b.nibble(2 + i % 16, i >= 16)]; }},
      {WeightType::kIQ4_XS,
       [](const Block& b, int i) {
         const int j = i / 32;
         const int low = b.nibble(4 + j / 2, j % 2 == 1);
         const int scale = low + 16 * static_cast<int>(b.bits(16 + 2 * j, 2)) - 32;
         return b.f16(0) * scale * kIq4[b.nibble(8 + 16 * j + i % 16, i % 32 >= 16)];
       }},
  };
  return references;
}

std::vector<std::byte> RandomBytes(const WeightFormat& format, int64_t num_blocks) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(static_cast<size_t>(num_blocks * format.block_bytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Every weight of the products is exact in double, and is rounded once.
TEST(WeightFormat, DecodesTheNearestNumberOfItsDefinition) {
  constexpr int64_t kBlocks = 2000;
  for (const WeightFormat& format : AllWeightFormats()) {
    if (!format.is_quantized()) continue;
    SCOPED_TRACE(format.name);
    ASSERT_TRUE(References().contains(format.type));
    const Reference reference = References().at(format.type);
    const auto bytes = RandomBytes(format, kBlocks);
    std::vector<float> values(static_cast<size_t>(kBlocks * format.block_elements));
    DecodeWeights(format.type, bytes.data(), static_cast<int64_t>(values.size()), values.data());
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      const Block block(bytes.data() + i / format.block_elements * format.block_bytes);
      const double wanted = reference(block, static_cast<int>(i % format.block_elements));
      const float got = values[static_cast<size_t>(i)];
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(got)) << i;
      } else {
        ASSERT_EQ(got, static_cast<float>(wanted)) << i;
      }
    }
  }
}

TEST(WeightFormat, UnpackedScalesAndCodesAreTheDecodedWeights) {
  for (const WeightFormat& format : AllWeightFormats()) {
    if (!format.is_quantized()) continue;
    SCOPED_TRACE(format.name);
    ASSERT_LE(format.block_elements, UnpackedBlock::kMaxElements);
    ASSERT_EQ(format.block_elements % format.sub_block_elements, 0);
    ASSERT_LE(format.block_elements / format.sub_block_elements, UnpackedBlock::kMaxSubBlocks);
    std::vector<float> ramp(static_cast<size_t>(format.block_elements));
    for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i) / 64 - 1.5f;
    std::vector<std::byte> bytes(static_cast<size_t>(format.block_bytes));
    EncodeWeights(format.type, ramp.data(), format.block_elements, bytes.data());
    UnpackedBlock block;
    format.unpack(bytes.data(), block);
    std::vector<float> values(ramp.size());
    DecodeWeights(format.type, bytes.data(), format.block_elements, values.data());
    for (int64_t i = 0; i < format.block_elements; ++i) {
      const int64_t sub = i / format.sub_block_elements;
      EXPECT_EQ(values[static_cast<size_t>(i)],
                block.scales[sub] * static_cast<float>(block.codes[i]) + block.minimums[sub]);
      if (!format.has_minimums) {
        EXPECT_EQ(block.minimums[sub], 0.0f);
      }
    }
  }
}

// The largest error of a weight, relative to the largest weight of its block: half a step of the
// codes, and what rounding the scales adds.
double LargestError(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 0x1p-11;
    case WeightType::kBF16:
      return 0x1p-8;
    case WeightType::kQ8_0:
      return 0.006;
    case WeightType::kQ6_K:
      return 0.025;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return 0.06;
    case WeightType::kQ2_K:
      return 0.55;
    case WeightType::kQ3_K:
      return 0.2;
    default:
      return 0.17;
  }
}

TEST(WeightFormat, EncodingLosesWhatTheFormatCannotHold) {
  constexpr int64_t kNum = 256 * 64;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
  std::vector<float> values(kNum), decoded(kNum);
  for (float& value : values) value = uniform(random);
  for (const WeightFormat& format : AllWeightFormats()) {
    SCOPED_TRACE(format.name);
    std::vector<std::byte> bytes(static_cast<size_t>(*WeightBytes(format.type, kNum)));
    EncodeWeights(format.type, values.data(), kNum, bytes.data());
    DecodeWeights(format.type, bytes.data(), kNum, decoded.data());
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(decoded[i] - values[i])));
    }
    EXPECT_LE(worst, 0.1 * LargestError(format.type));
  }
}

TEST(WeightFormat, ZerosStayZeros) {
  const std::vector<float> zeros(256, 0.0f);
  for (const WeightFormat& format : AllWeightFormats()) {
    std::vector<std::byte> bytes(static_cast<size_t>(*WeightBytes(format.type, 256)));
    std::vector<float> decoded(256, 1.0f);
    EncodeWeights(format.type, zeros.data(), 256, bytes.data());
    DecodeWeights(format.type, bytes.data(), 256, decoded.data());
    for (const float value : decoded) EXPECT_EQ(value, 0.0f) << format.name;
  }
}

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
  EXPECT_EQ(WeightBytes(WeightType::kQ6_K, 512), 420);
  EXPECT_EQ(WeightBytes(WeightType::kQ6_K, 128), std::nullopt);
  EXPECT_EQ(WeightBytes(WeightType::kF32, std::numeric_limits<int64_t>::max() / 2), std::nullopt);
}

}  // namespace
}  // namespace kvick
