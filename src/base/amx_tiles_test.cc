#include "base/amx_tiles.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/isa.h"

namespace kvick {
namespace {

struct Shape {
  int rows, columns, pairs;  // C [rows, columns], A [rows, 2 * pairs], B [pairs, 2 * columns]
};

constexpr std::array kShapes = {Shape{16, 16, 16}, Shape{16, 1, 16}, Shape{1, 16, 16},
                                Shape{3, 5, 7},    Shape{9, 16, 1},  Shape{1, 1, 1}};

// Operands as they lie in memory; each buffer has full tiles, whatever the shape.
struct Operands {
  std::array<float, 256> c;
  std::array<uint16_t, 512> a, b;
};

float DenormalIsZero(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// fma(a, b, c) with denormal operands and results as zero. Whether a result is tiny is decided on
// the value rounded as if the exponent had no end, so it is computed 2^64 times larger.
float FlushingFma(float a, float b, float c) {
  a = DenormalIsZero(a);
  b = DenormalIsZero(b);
  c = DenormalIsZero(c);
  const float result = std::fma(a, b, c);
  if (!(std::fabs(result) <= 0x1p-126f)) return result;
  const float large = std::fma(a * 0x1p64f, b, c * 0x1p64f);
  return std::fabs(large) < 0x1p-62f ? std::copysign(0.0f, large) : result;
}

// Intel's pseudo-code, line by line.
void ReferenceDot(Shape shape, Operands& x) {
  for (int m = 0; m < shape.rows; ++m) {
    float sums[32] = {};
    for (int k = 0; k < shape.pairs; ++k) {
      for (int n = 0; n < shape.columns; ++n) {
        for (int odd : {0, 1}) {
          sums[2 * n + odd] = FlushingFma(BF16ToF32(x.a[m * 32 + 2 * k + odd]),
                                          BF16ToF32(x.b[k * 32 + 2 * n + odd]), sums[2 * n + odd]);
        }
      }
    }
    for (int n = 0; n < shape.columns; ++n) {
      const float sum = FlushingFma(sums[2 * n], 1.0f, sums[2 * n + 1]);
      x.c[m * 16 + n] = FlushingFma(x.c[m * 16 + n], 1.0f, sum);
    }
  }
}

template <class Tiles>
void TileDot(Shape shape, Operands& x) {
  TileConfig config;
  config.SetShape(0, shape.rows, 4 * shape.columns);
  config.SetShape(1, shape.rows, 4 * shape.pairs);
  config.SetShape(2, shape.pairs, 4 * shape.columns);
  Tiles::Configure(config);
  Tiles::template Load<0>(x.c.data(), 64);
  Tiles::template Load<1>(x.a.data(), 64);
  Tiles::template Load<2>(x.b.data(), 64);
  Tiles::template DotBF16<0, 1, 2>();
  Tiles::template Store<0>(x.c.data(), 64);
  Tiles::Release();
}

enum class Data { kOrdinary, kNearDenormal, kAnyBits };

Operands RandomOperands(Data data, std::mt19937& random) {
  const auto bf16 = [&]() -> uint16_t {
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t sign_and_mantissa = bits & 0x807fu;
    switch (data) {
      case Data::kOrdinary:  // 2^-15 to 2^16
        return static_cast<uint16_t>(sign_and_mantissa | ((112 + (bits >> 16) % 32) << 7));
      case Data::kNearDenormal:  // products of 2^-130 to 2^-124; some operands are denormal
        return static_cast<uint16_t>(sign_and_mantissa |
                                     (((bits >> 16) % 32 == 0 ? 0 : 62 + (bits >> 16) % 4) << 7));
      case Data::kAnyBits:
        break;
    }
    return static_cast<uint16_t>(bits);
  };
  Operands x;
  for (uint16_t& value : x.a) value = bf16();
  for (uint16_t& value : x.b) value = bf16();
  for (float& value : x.c) {
    value = data == Data::kNearDenormal
                ? std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x80ffffffu)
                : BF16ToF32(bf16());
  }
  return x;
}

using Dot = void (*)(Shape, Operands&);

// Bits are equal; any NaN equals any other.
void ExpectSameBits(Dot actual, Dot expected) {
  std::mt19937 random(1);
  for (Data data : {Data::kOrdinary, Data::kNearDenormal, Data::kAnyBits}) {
    for (const Shape& shape : kShapes) {
      for (int round = 0; round < 50; ++round) {
        Operands x = RandomOperands(data, random);
        Operands y = x;
        actual(shape, x);
        expected(shape, y);
        for (size_t i = 0; i < x.c.size(); ++i) {
          if (std::isnan(x.c[i]) && std::isnan(y.c[i])) continue;
          ASSERT_EQ(std::bit_cast<uint32_t>(x.c[i]), std::bit_cast<uint32_t>(y.c[i]))
              << "element " << i << " of [" << shape.rows << ", " << shape.columns << "], "
              << shape.pairs << " pairs, kind of data " << static_cast<int>(data);
        }
      }
    }
  }
}

TEST(EmulatedTiles, FollowThePseudoCodeBitByBit) {
  if (!IsaAvailable(Isa::kAmxEmulated)) GTEST_SKIP() << "the emulation needs AVX-512";
  ExpectSameBits(TileDot<EmulatedTiles>, ReferenceDot);
}

TEST(HardwareTiles, HaveTheBitsOfTheEmulation) {
  if (!IsaAvailable(Isa::kAmx)) GTEST_SKIP() << "this machine has no AMX";
  ExpectSameBits(TileDot<HardwareTiles>, TileDot<EmulatedTiles>);
}

template <class Tiles>
void ExpectShapeAndStride() {
  std::vector<uint8_t> source(1024), stored(1024, 0xee);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i % 251);
  TileConfig config;
  config.SetShape(3, 5, 12);
  Tiles::Configure(config);
  Tiles::template Load<3>(source.data(), 40);
  Tiles::template Store<3>(stored.data(), 64);
  Tiles::template Zero<3>();
  Tiles::template Store<3>(stored.data() + 512, 64);
  Tiles::Release();
  for (int i = 0; i < 1024; ++i) {
    const int row = i % 512 / 64, column = i % 64;
    const bool inside = row < 5 && column < 12;
    const int expected = !inside ? 0xee : i < 512 ? source[row * 40 + column] : 0;
    ASSERT_EQ(stored[i], expected) << "byte " << i;
  }
}

TEST(EmulatedTiles, LoadAndStoreObeyShapeAndStride) { ExpectShapeAndStride<EmulatedTiles>(); }

TEST(HardwareTiles, LoadAndStoreObeyShapeAndStride) {
  if (!IsaAvailable(Isa::kAmx)) GTEST_SKIP() << "this machine has no AMX";
  ExpectShapeAndStride<HardwareTiles>();
}

TEST(EmulatedTilesDeathTest, ShapesThatTheInstructionRefusesAreRefused) {
  if (!IsaAvailable(Isa::kAmxEmulated)) GTEST_SKIP() << "the emulation needs AVX-512";
  const auto dot = [](int a_row_bytes) {
    TileConfig config;
    config.SetShape(0, 16, 64);
    config.SetShape(1, 16, a_row_bytes);
    config.SetShape(2, 16, 64);
    EmulatedTiles::Configure(config);
    EmulatedTiles::DotBF16<0, 1, 2>();
  };
  dot(64);
  EXPECT_DEATH(dot(32), "check failed");
}

}  // namespace
}  // namespace kvick

#endif  // defined(__x86_64__)
