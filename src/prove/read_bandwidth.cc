#include "prove/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/check.h"
#include "base/memory.h"
#include "base/threads.h"

namespace kvick {
namespace {

constexpr int64_t kBytes = int64_t{1} << 30;  // some machines have 480 MB of L3
constexpr int64_t kTaskBytes = int64_t{4} << 20;
constexpr int kPasses = 4;

// Eight independent sums: enough loads under way for the compiler's vectors.
uint64_t Sum(const uint64_t* data, int64_t num) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < num; i += 8) {
    for (int64_t j = 0; j < 8; ++j) sums[j] ^= data[i + j];
  }
  return sums[0] ^ sums[1] ^ sums[2] ^ sums[3] ^ sums[4] ^ sums[5] ^ sums[6] ^ sums[7];
}

}  // namespace

Result<double> MeasureReadBandwidth(int num_threads) {
  KVICK_ASSIGN_OR_RETURN(const MappedRegion region,
                         MappedRegion::Create(kBytes, Backing::kUpFront));
  const auto* data = reinterpret_cast<const uint64_t*>(region.data());
  constexpr int64_t kTaskNumbers = kTaskBytes / sizeof(uint64_t);
  std::atomic<uint64_t> sink{0};
  double best_seconds = 1e9;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    ParallelFor(num_threads, kBytes / kTaskBytes, [&](int64_t task, int) {
      sink.fetch_xor(Sum(data + task * kTaskNumbers, kTaskNumbers), std::memory_order_relaxed);
    });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, elapsed.count());
  }
  return kBytes / best_seconds / 1e9;
}

}  // namespace kvick
