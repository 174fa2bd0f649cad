#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "base/isa.h"
#include "measure/caches.h"
#include "measure/multiply_limit.h"
#include "measure/read_limit.h"

namespace kvick {
namespace {

double BestSeconds(const std::function<void()>& pass) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  return best;
}

// What no machine reaches: loads and sums that a compiler left out would.
TEST(ReadLimit, ReadsAllBytesOfAPass) {
  auto limit = ReadLimit::Create(int64_t{200} << 20).value();
  for (int num_threads : {1, 2}) {
    const double seconds = BestSeconds([&] { limit.Pass(num_threads); });
    EXPECT_LT(static_cast<double>(limit.pass_bytes()) / seconds / 1e9, 400 * num_threads);
  }
}

TEST(ReadLimit, ReadsSmallBuffersToo) {
  auto limit = ReadLimit::Create(1).value();
  EXPECT_EQ(limit.pass_bytes(), int64_t{1} << 20);
  limit.Pass(2);
  limit.Pass(2);
}

// Multiplications of 16 lanes and a step, twice as many in a cycle as a core has.
double MaxFlopsPerCycle(Isa isa, Multiplication multiplication) {
  const double lanes = isa == Isa::kAvx2 ? 8 : isa == Isa::kScalar || isa == Isa::kNeon ? 4 : 16;
  switch (multiplication) {
    case Multiplication::kF32Fma:
      return 2 * 2 * lanes;
    case Multiplication::kBF16Dot:
    case Multiplication::kInt16Dot:
      return 2 * 4 * lanes;
    case Multiplication::kInt8Dot:
      return 2 * 8 * lanes;
    case Multiplication::kBF16Tiles:
      return 2 * 2 * 16 * 32;
  }
  return 0;
}

TEST(MultiplyLimit, SumsAllStepsOfAPass) {
  constexpr double kMaxGhz = 8;
  for (Isa isa : AvailableIsas()) {
    for (Multiplication multiplication : MultiplicationsOf(isa)) {
      const MultiplyLimit limit({isa, 1}, multiplication);
      const double seconds = BestSeconds([&] { limit.Pass(); });
      EXPECT_LT(limit.flops_per_pass() / seconds / 1e9,
                MaxFlopsPerCycle(isa, multiplication) * kMaxGhz)
          << IsaName(isa) << ", " << MultiplicationName(multiplication);
    }
  }
}

TEST(MultiplyLimit, MoreThreadsDoMore) {
  const MultiplyLimit one({Isa::kScalar, 1}, Multiplication::kF32Fma);
  const MultiplyLimit three({Isa::kScalar, 3}, Multiplication::kF32Fma);
  EXPECT_EQ(three.flops_per_pass(), 3 * one.flops_per_pass());
}

// Kernels multiply with what there is a limit for.
TEST(MultiplyLimit, ThereIsOneForEveryKernel) {
  for (Isa isa : AvailableIsas()) {
    const std::vector<Multiplication> kinds = MultiplicationsOf(isa);
    EXPECT_EQ(kinds.front(), Multiplication::kF32Fma);
    for (const WeightFormat& format : AllWeightFormats()) {
      EXPECT_EQ(std::ranges::count(kinds, WeightMultiplication(isa, format.type)), 1);
    }
    for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
      EXPECT_EQ(std::ranges::count(kinds, AttentionMultiplication(isa, dtype)), 1);
    }
  }
}

TEST(MultiplyLimit, FollowsTheIsa) {
  using enum Multiplication;
  EXPECT_EQ(WeightMultiplication(Isa::kAvx512Bf16, WeightType::kBF16), kBF16Dot);
  EXPECT_EQ(WeightMultiplication(Isa::kAvx512Bf16, WeightType::kF16), kF32Fma);
  EXPECT_EQ(WeightMultiplication(Isa::kAvx512, WeightType::kBF16), kF32Fma);
  EXPECT_EQ(WeightMultiplication(Isa::kAmx, WeightType::kBF16), kBF16Tiles);
  EXPECT_EQ(AttentionMultiplication(Isa::kAvx512Bf16, DType::kBF16), kF32Fma);
  EXPECT_EQ(AttentionMultiplication(Isa::kAmx, DType::kBF16), kBF16Tiles);
  EXPECT_EQ(AttentionMultiplication(Isa::kAmx, DType::kF16), kF32Fma);
}

TEST(Caches, AreExceeded) {
  EXPECT_GE(LastLevelCacheBytes(), 0);
  EXPECT_LT(LastLevelCacheBytes(), int64_t{1} << 40);
  EXPECT_GE(BytesBeyondCaches(), int64_t{1} << 30);
  EXPECT_GE(BytesBeyondCaches(), 2 * LastLevelCacheBytes());
}

}  // namespace
}  // namespace kvick
