#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"

namespace kvick {
namespace {

// Every kind of number: random bits, and around each power of two; not a whole number of vectors.
std::vector<float> ManyNumbers() {
  std::mt19937 random(1);
  std::vector<float> numbers;
  for (int i = 0; i < 1 << 20; ++i)
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t mantissa : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u,
                                    0x8001u, 0x18000u, 0x7fffffu}) {
      for (const uint32_t sign : {0u, 1u}) {
        numbers.push_back(std::bit_cast<float>(sign << 31 | exponent << 23 | mantissa));
      }
    }
  }
  numbers.resize(numbers.size() / 16 * 16 + 7, 1.0f);
  return numbers;
}

TEST(Convert, RowsHaveTheBitsOfSingleNumbers) {
  const std::vector<float> numbers = ManyNumbers();
  const auto num = static_cast<int64_t>(numbers.size());
  std::vector<uint16_t> bf16(numbers.size()), f16(numbers.size());
  ConvertFromF32(DType::kBF16, numbers.data(), num, bf16.data());
  ConvertFromF32(DType::kF16, numbers.data(), num, f16.data());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(bf16[i], F32ToBF16(numbers[i])) << std::hex << std::bit_cast<uint32_t>(numbers[i]);
    ASSERT_EQ(f16[i], F32ToF16(numbers[i])) << std::hex << std::bit_cast<uint32_t>(numbers[i]);
  }
}

TEST(Convert, AllSixteenBitNumbersComeBackExactly) {
  std::vector<uint16_t> bits(65536 + 7);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> numbers(bits.size());
  ConvertToF32(DType::kBF16, bits.data(), static_cast<int64_t>(bits.size()), numbers.data());
  for (size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(numbers[i]), std::bit_cast<uint32_t>(BF16ToF32(bits[i])))
        << i;
  }
  ConvertToF32(DType::kF16, bits.data(), static_cast<int64_t>(bits.size()), numbers.data());
  for (size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(numbers[i]), std::bit_cast<uint32_t>(F16ToF32(bits[i]))) << i;
  }
}

TEST(Convert, ARowOfNoElementsNeedsNoAddress) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    ConvertFromF32(dtype, nullptr, 0, nullptr);
    ConvertToF32(dtype, nullptr, 0, nullptr);
  }
}

}  // namespace
}  // namespace kvick
