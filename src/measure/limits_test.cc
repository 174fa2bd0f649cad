#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/isa.h"
#include "measure/caches.h"
#include "measure/matrix_limit.h"
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

TEST(MatrixLimit, SumsAllStepsOfAPass) {
  constexpr double kMaxGhz = 8;
  for (Isa isa : AvailableIsas()) {
    for (DType dtype : {DType::kBF16, DType::kF32}) {
      const double lanes = UsesTiles(isa, dtype) ? 16 * 32 : isa == Isa::kAvx2 ? 8 : 16;
      const MatrixLimit limit({isa, 1}, dtype);
      const double seconds = BestSeconds([&] { limit.Pass(); });
      EXPECT_LT(limit.flops_per_pass() / seconds / 1e9, 2 * 2 * lanes * kMaxGhz) << IsaName(isa);
    }
  }
}

TEST(MatrixLimit, MoreThreadsDoMore) {
  const MatrixLimit one({Isa::kScalar, 1}, DType::kF32), three({Isa::kScalar, 3}, DType::kF32);
  EXPECT_EQ(three.flops_per_pass(), 3 * one.flops_per_pass());
}

TEST(Caches, AreExceeded) {
  EXPECT_GE(LastLevelCacheBytes(), 0);
  EXPECT_LT(LastLevelCacheBytes(), int64_t{1} << 40);
  EXPECT_GE(BytesBeyondCaches(), int64_t{1} << 30);
  EXPECT_GE(BytesBeyondCaches(), 2 * LastLevelCacheBytes());
}

}  // namespace
}  // namespace kvick
