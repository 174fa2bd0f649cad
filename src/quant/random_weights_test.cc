#include "quant/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kvick {
namespace {

std::vector<std::byte> Bytes(const RandomWeights& weights) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(WeightBytes(weights.type, weights.num_elements).value()));
  weights.WriteTo(bytes.data());
  return bytes;
}

constexpr int64_t kNum = 200 * 1024;  // several tasks

TEST(RandomWeights, HaveTheMeanAndTheDeviation) {
  for (const WeightFormat& format : AllWeightFormats()) {
    std::vector<float> values(kNum);
    DecodeWeights(format.type, Bytes({format.type, kNum, 0.25}).data(), kNum, values.data());
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += value * value;
    }
    // Five standard errors of each mean, and what rounding to two bits adds.
    const double error = 5 / std::sqrt(static_cast<double>(kNum));
    EXPECT_NEAR(sum / kNum, 0, 0.25 * (error + 0.1)) << format.name;
    EXPECT_NEAR(std::sqrt(squares / kNum), 0.25, 0.25 * (error + 0.1)) << format.name;
  }
}

TEST(RandomWeights, AreThoseOfTheSeedOnAnyNumberOfThreads) {
  for (const WeightFormat& format : AllWeightFormats()) {
    RandomWeights weights{format.type, kNum};
    const auto one = Bytes(weights);
    weights.num_threads = 3;
    EXPECT_EQ(Bytes(weights), one) << format.name;
    weights.seed = 2;
    EXPECT_NE(Bytes(weights), one) << format.name;
  }
}

TEST(RandomWeights, RepeatAfterALongPeriod) {
  constexpr int64_t kPeriod = int64_t{1} << 22;
  const auto bytes = Bytes({WeightType::kQ8_0, kPeriod + 1024, 1, 1, 2});
  const auto begin = static_cast<size_t>(WeightBytes(WeightType::kQ8_0, kPeriod).value());
  EXPECT_TRUE(
      std::equal(bytes.begin() + static_cast<ptrdiff_t>(begin), bytes.end(), bytes.begin()));
}

}  // namespace
}  // namespace kvick
