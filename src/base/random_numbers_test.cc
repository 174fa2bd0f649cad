#include "base/random_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/dtype.h"

namespace kvick {
namespace {

std::vector<std::byte> Bytes(const RandomNumbers& numbers) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(numbers.num_elements * DTypeBytes(numbers.dtype)));
  numbers.WriteTo(bytes.data());
  return bytes;
}

std::vector<float> Values(const RandomNumbers& numbers) {
  std::vector<float> values(static_cast<size_t>(numbers.num_elements));
  ConvertToF32(numbers.dtype, Bytes(numbers).data(), numbers.num_elements, values.data());
  return values;
}

constexpr int64_t kNum = 200'000;  // several tasks
constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST(RandomNumbers, HaveTheMeanAndTheDeviation) {
  for (DType dtype : kDTypes) {
    double sum = 0, squares = 0, neighbours = 0, last = 0;
    for (const float value : Values({dtype, kNum, 0.25})) {
      sum += value;
      squares += value * value;
      neighbours += value * last;
      last = value;
    }
    // Five standard errors of each mean, and what rounding to the type adds.
    const double error = 5 / std::sqrt(static_cast<double>(kNum));
    EXPECT_NEAR(sum / kNum, 0, 0.25 * (error + 0.01)) << DTypeName(dtype);
    EXPECT_NEAR(std::sqrt(squares / kNum), 0.25, 0.25 * (error + 0.01)) << DTypeName(dtype);
    EXPECT_NEAR(neighbours / kNum, 0, 0.25 * 0.25 * (error + 0.01)) << DTypeName(dtype);
  }
}

TEST(RandomNumbers, AreThoseOfTheSeedOnAnyNumberOfThreads) {
  for (DType dtype : kDTypes) {
    RandomNumbers numbers{dtype, kNum};
    const auto one = Bytes(numbers);
    numbers.num_threads = 3;
    EXPECT_EQ(Bytes(numbers), one);
    numbers.seed = 2;
    EXPECT_NE(Bytes(numbers), one);
  }
}

}  // namespace
}  // namespace kvick
