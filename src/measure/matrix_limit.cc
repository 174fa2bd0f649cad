#include "measure/matrix_limit.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/amx_tiles.h"
#include "base/dtype.h"
#include "base/highway_targets.h"
#include "base/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "measure/matrix_limit.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Two multiply-adds per cycle, with a latency of 4 to 5 cycles, need 10 sums. 12 sums and two
// operands fit into the 16 registers of AVX2.
constexpr int kSums = 12;

float VectorSums(int64_t num_steps) {
  const hn::ScalableTag<float> d;
  using Vector = hn::Vec<decltype(d)>;
  Vector sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  const Vector a = hn::Set(d, 0.5f), b = hn::Set(d, 1.0f);  // each sum approaches 2
  for (int64_t step = 0; step < num_steps; ++step) {
    for (Vector& sum : sums) sum = hn::MulAdd(sum, a, b);
  }
  float total = 0;
  for (const Vector& sum : sums) total += hn::GetLane(sum);
  return total;
}

// FLOPs per step.
double VectorFlops() {
  return 2.0 * kSums * static_cast<double>(hn::MaxLanes(hn::ScalableTag<float>()));
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {
namespace {

// Enough that the start of a task costs nothing in comparison, and few enough that a pass is short:
// half a millisecond per task if the isa is not emulated.
constexpr int64_t kTasksPerThread = 8;

#if defined(__x86_64__)

// The 2 x 2 patch of the kernels: four sums of products of two tiles with two others. The operands
// are not zeros, for which a processor may take less power and a higher clock.
template <class Tiles>
float TileSums(int64_t num_steps) {
  constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;
  alignas(64) uint16_t operand[kTileBytes / sizeof(uint16_t)];
  for (size_t i = 0; i < std::size(operand); ++i) {
    operand[i] = F32ToBF16(static_cast<float>(i * 37 % 101) / 50 - 1);  // -1 to 1, no pattern
  }
  TileConfig config;
  for (int tile = 0; tile < kNumTiles; ++tile) config.SetShape(tile, kTileRows, kTileRowBytes);
  Tiles::Configure(config);
  Tiles::template Load<4>(operand, kTileRowBytes);
  Tiles::template Load<5>(operand, kTileRowBytes);
  Tiles::template Load<6>(operand, kTileRowBytes);
  Tiles::template Load<7>(operand, kTileRowBytes);
  for (int64_t step = 0; step < num_steps; ++step) {
    Tiles::template DotBF16<0, 4, 6>();
    Tiles::template DotBF16<1, 4, 7>();
    Tiles::template DotBF16<2, 5, 6>();
    Tiles::template DotBF16<3, 5, 7>();
  }
  alignas(64) float sums[kTileBytes / sizeof(float)];
  Tiles::template Store<0>(sums, kTileRowBytes);
  Tiles::Release();
  return sums[0];
}

constexpr double kTileFlops = 4.0 * 16 * 32 * 16 * 2;  // four products of 16 x 32 x 16

#endif

}  // namespace

MatrixLimit::MatrixLimit(const Exec& exec, DType dtype)
    : num_threads_(exec.num_threads),
      sums_(KVICK_FOR_ISA(exec.isa, VectorSums)),
      flops_per_step_(KVICK_FOR_ISA(exec.isa, VectorFlops)()),
      steps_per_task_(int64_t{1} << 18) {
#if defined(__x86_64__)
  if (!UsesTiles(exec.isa, dtype)) return;
  const bool is_emulated = exec.isa == Isa::kAmxEmulated;
  sums_ = is_emulated ? TileSums<EmulatedTiles> : TileSums<HardwareTiles>;
  flops_per_step_ = kTileFlops;
  steps_per_task_ = int64_t{1} << (is_emulated ? 4 : 14);
#endif
}

void MatrixLimit::Pass() const {
  std::atomic<float> sink{0};
  ParallelFor(num_threads_, kTasksPerThread * num_threads_,
              [&](int64_t, int) { sink.store(sums_(steps_per_task_), std::memory_order_relaxed); });
}

double MatrixLimit::flops_per_pass() const {
  return flops_per_step_ * static_cast<double>(steps_per_task_ * kTasksPerThread * num_threads_);
}

}  // namespace kvick
#endif  // HWY_ONCE
