#include "measure/read_limit.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/highway_targets.h"
#include "base/threads.h"
#include "measure/caches.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "measure/read_limit.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/highway.h"

// Several streams of the widest loads, each in ascending order, which suits the hardware
// prefetcher.
//
// GB/s of one thread, best decile of 150, on a Xeon of family 6 model 106: 10.7 with one
// stream, 13.1 with 4, 14.4 with 8, 14.6 with 16, 14.2 with 32, 13.5 with 64. Kernels that prefetch
// reach more than one stream does. On model 207, medians of 15: 16.1 with one stream, 15.9 with 2,
// 4 or 8; 14.5 with loads of 32 bytes, 11.1 with 16. Tried without a gain on both: software
// prefetch 512 B to 8 KiB ahead. Tasks of 256 KiB to 128 MiB per thread give the same.

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kStreams = 16;

// REQUIRES: num is a multiple of 32 * kStreams; data is aligned to 64 bytes.
uint64_t XorOfAll(const uint64_t* data, int64_t num) {
  const hn::ScalableTag<uint64_t> d;
  const int64_t lanes = hn::MaxLanes(d);
  const int64_t stream_num = num / kStreams;
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i < stream_num; i += 4 * lanes) {
    for (int64_t stream = 0; stream < kStreams; ++stream) {
      const uint64_t* next = data + stream * stream_num + i;
      a = hn::Xor(a, hn::Load(d, next));
      b = hn::Xor(b, hn::Load(d, next + lanes));
      c = hn::Xor(c, hn::Load(d, next + 2 * lanes));
      e = hn::Xor(e, hn::Load(d, next + 3 * lanes));
    }
  }
  alignas(64) uint64_t parts[8] = {};
  hn::Store(hn::Xor(hn::Xor(a, b), hn::Xor(c, e)), d, parts);
  return parts[0] ^ parts[1] ^ parts[2] ^ parts[3] ^ parts[4] ^ parts[5] ^ parts[6] ^ parts[7];
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

// Tasks are small, so that an interrupted thread does not delay the others for long. A pass is long
// compared with starting the threads.
constexpr int64_t kTaskBytes = int64_t{1} << 20;
constexpr int64_t kMaxPassBytes = int64_t{32} << 20;

Result<ReadLimit> ReadLimit::Create(int64_t buffer_bytes) {
  KVICK_CHECK(buffer_bytes > 0);
  const int64_t pass_bytes = std::min(kMaxPassBytes, RoundUp(buffer_bytes, kTaskBytes));
  KVICK_ASSIGN_OR_RETURN(
      MappedRegion buffer,
      MappedRegion::Create(RoundUp(buffer_bytes, pass_bytes), Backing::kUpFront));
  return ReadLimit(std::move(buffer), pass_bytes);
}

void ReadLimit::Pass(int num_threads) {
  const auto xor_of_all = KVICK_FOR_ISA(BestIsa(), XorOfAll);
  const std::byte* const begin = buffer_.data() + next_byte_;
  std::atomic<uint64_t> sink{0};
  ParallelFor(num_threads, pass_bytes_ / kTaskBytes, [&](int64_t task, int) {
    const auto* data = reinterpret_cast<const uint64_t*>(begin + task * kTaskBytes);
    sink.fetch_xor(xor_of_all(data, kTaskBytes / static_cast<int64_t>(sizeof(uint64_t))),
                   std::memory_order_relaxed);
  });
  sink_ ^= sink.load(std::memory_order_relaxed);
  next_byte_ += pass_bytes_;
  if (next_byte_ + pass_bytes_ > buffer_.size_bytes()) next_byte_ = 0;
}

Result<double> MeasureReadBandwidth(int num_threads) {
  const int64_t buffer_bytes = BytesBeyondCaches();
  KVICK_ASSIGN_OR_RETURN(ReadLimit limit, ReadLimit::Create(buffer_bytes));
  double best_seconds = 1e9;
  for (int64_t num_read = 0; num_read < 4 * buffer_bytes; num_read += limit.pass_bytes()) {
    const auto start = std::chrono::steady_clock::now();
    limit.Pass(num_threads);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, elapsed.count());
  }
  return static_cast<double>(limit.pass_bytes()) / best_seconds / 1e9;
}

}  // namespace kvick
#endif  // HWY_ONCE
