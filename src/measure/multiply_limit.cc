#include "measure/multiply_limit.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/amx_tiles.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/highway_targets.h"
#include "base/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "measure/multiply_limit.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Each kind: the lanes of its sums and of its operands, what one operation adds to a sum, and how
// many sums there are. Two operations per cycle, with a latency of 4 to 5 cycles, need 10 sums. 12
// sums and two operands fit into the 16 registers of AVX2.
struct F32Fma {
  static constexpr int kSums = 12;
  using SumLanes = hn::ScalableTag<float>;
  using Lanes = SumLanes;
  static constexpr float kA = 0.5f, kB = 1.0f;  // each sum approaches 2
  static constexpr int kProducts = 1;           // of a lane of the sums
  using Sum = hn::Vec<SumLanes>;
  using Operand = hn::Vec<Lanes>;
  static HWY_INLINE void Add(Sum& sum, const Operand& a, const Operand& b) {
    sum = hn::MulAdd(sum, a, b);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
struct Int16Pairs {  // without VNNI: only the addition waits for a sum, and for one cycle
  static constexpr int kSums = 4;
  using SumLanes = hn::ScalableTag<int32_t>;
  using Lanes = hn::ScalableTag<int16_t>;
  static constexpr int16_t kA = 3, kB = -5;
  static constexpr int kProducts = 2;
  using Sum = hn::Vec<SumLanes>;
  using Operand = hn::Vec<Lanes>;
  static HWY_INLINE void Add(Sum& sum, Operand& a, const Operand& b) {
    asm("" : "+v"(a.raw));  // or a compiler would multiply once
    Sum unused = sum;
    sum = hn::ReorderWidenMulAccumulate(SumLanes(), a, b, sum, unused);
  }
};
#endif

#if HWY_TARGET == HWY_AVX3
// The instructions by name, as the target that these bodies are compiled for lacks them.
struct BF16Dot {
  static constexpr int kSums = 12;
  using SumLanes = hn::ScalableTag<float>;
  using Lanes = hn::ScalableTag<uint16_t>;
  static constexpr uint16_t kA = 0x3F00, kB = 0xBE80;  // 0.5 and -0.25 in bf16
  static constexpr int kProducts = 2;
  using Sum = hn::Vec<SumLanes>;
  using Operand = hn::Vec<Lanes>;
  static HWY_INLINE void Add(Sum& sum, const Operand& a, const Operand& b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};

struct Int16Dot : Int16Pairs {
  static constexpr int kSums = 12;
  static HWY_INLINE void Add(Sum& sum, const Operand& a, const Operand& b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};

struct Int8Dot {
  static constexpr int kSums = 12;
  using SumLanes = hn::ScalableTag<int32_t>;
  using Lanes = hn::ScalableTag<int8_t>;
  static constexpr int8_t kA = 3, kB = -5;
  static constexpr int kProducts = 4;
  using Sum = hn::Vec<SumLanes>;
  using Operand = hn::Vec<Lanes>;
  static HWY_INLINE void Add(Sum& sum, const Operand& a, const Operand& b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};
#endif

// Without loops over the sums and with constant indices alone, so that every compiler keeps them in
// registers: stored at each step, they are half as fast.
template <class Kind, size_t... kIndices>
HWY_INLINE float SumsOf(int64_t num_steps, std::index_sequence<kIndices...>) {
  const typename Kind::SumLanes d;
  typename Kind::Sum sums[] = {hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(kIndices))...};
  typename Kind::Operand a = hn::Set(typename Kind::Lanes(), Kind::kA);
  const typename Kind::Operand b = hn::Set(typename Kind::Lanes(), Kind::kB);
  for (int64_t step = 0; step < num_steps; ++step) {
    (Kind::Add(sums[kIndices], a, b), ...);
  }
  return (static_cast<float>(hn::GetLane(sums[kIndices])) + ...);
}

template <class Kind>
float VectorSums(int64_t num_steps) {
  return SumsOf<Kind>(num_steps, std::make_index_sequence<Kind::kSums>());
}

template <class Kind>
MultiplyLimit::Kernel VectorKernel() {
  constexpr int64_t kStepsPerTask = int64_t{1} << 18;
  const double num_lanes = static_cast<double>(hn::MaxLanes(typename Kind::SumLanes()));
  return {VectorSums<Kind>, 2.0 * Kind::kSums * Kind::kProducts * num_lanes, kStepsPerTask};
}

MultiplyLimit::Kernel VectorKernelOf(Multiplication multiplication, bool has_vnni) {
#if HWY_TARGET == HWY_AVX3
  if (multiplication == Multiplication::kBF16Dot) return VectorKernel<BF16Dot>();
  if (multiplication == Multiplication::kInt16Dot && has_vnni) return VectorKernel<Int16Dot>();
  if (multiplication == Multiplication::kInt8Dot) return VectorKernel<Int8Dot>();
#endif
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (multiplication == Multiplication::kInt16Dot) return VectorKernel<Int16Pairs>();
#endif
  KVICK_CHECK(multiplication == Multiplication::kF32Fma);
  static_cast<void>(has_vnni);
  return VectorKernel<F32Fma>();
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {
namespace {

// Enough that the start of a task costs nothing in comparison, and few enough that a pass is short:
// half a millisecond per task if the isa is not emulated.
constexpr int64_t kTasksPerThread = 4;

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

MultiplyLimit::Kernel TileKernel(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return {TileSums<HardwareTiles>, kTileFlops, int64_t{1} << 14};
  if (isa == Isa::kAmxEmulated) return {TileSums<EmulatedTiles>, kTileFlops, int64_t{1} << 4};
#endif
  KVICK_CHECK(!UsesTiles(isa, DType::kBF16));
  return {};
}

}  // namespace

std::string_view MultiplicationName(Multiplication multiplication) {
  switch (multiplication) {
    case Multiplication::kF32Fma:
      return "f32 fma";
    case Multiplication::kBF16Dot:
      return "bf16 dot";
    case Multiplication::kInt16Dot:
      return "int16 dot";
    case Multiplication::kInt8Dot:
      return "int8 dot";
    case Multiplication::kBF16Tiles:
      return "bf16 tiles";
  }
  return "";
}

std::vector<Multiplication> MultiplicationsOf(Isa isa) {
  std::vector<Multiplication> kinds = {Multiplication::kF32Fma};
  if (isa == Isa::kScalar || isa == Isa::kNeon) return kinds;
  if (isa == Isa::kAvx512Bf16) kinds.push_back(Multiplication::kBF16Dot);
  kinds.push_back(Multiplication::kInt16Dot);
  if (HasInt8Dot(isa)) kinds.push_back(Multiplication::kInt8Dot);
  if (UsesTiles(isa, DType::kBF16)) kinds.push_back(Multiplication::kBF16Tiles);
  return kinds;
}

Multiplication WeightMultiplication(Isa isa, WeightType type) {
  if (UsesTiles(isa, type)) return Multiplication::kBF16Tiles;
  if (FormatOf(type).is_quantized()) {
    if (HasInt8Dot(isa)) return Multiplication::kInt8Dot;
    const bool has_int16_dot = isa != Isa::kNeon && isa != Isa::kScalar;
    return has_int16_dot ? Multiplication::kInt16Dot : Multiplication::kF32Fma;
  }
  const bool is_dot = isa == Isa::kAvx512Bf16 && type == WeightType::kBF16;
  return is_dot ? Multiplication::kBF16Dot : Multiplication::kF32Fma;
}

double WeightFlops(Isa isa, WeightType type) {
  return WeightMultiplication(isa, type) == Multiplication::kInt8Dot ? 4 : 2;
}

Multiplication AttentionMultiplication(Isa isa, DType dtype) {
  return UsesTiles(isa, dtype) ? Multiplication::kBF16Tiles : Multiplication::kF32Fma;
}

MultiplyLimit::MultiplyLimit(const Exec& exec, Multiplication multiplication)
    : num_threads_(exec.num_threads),
      kernel_(multiplication == Multiplication::kBF16Tiles
                  ? TileKernel(exec.isa)
                  : KVICK_FOR_ISA(exec.isa, VectorKernelOf)(multiplication, HasInt8Dot(exec.isa))) {
}

void MultiplyLimit::Pass() const {
  std::atomic<float> sink{0};
  ParallelFor(num_threads_, kTasksPerThread * num_threads_, [&](int64_t, int) {
    sink.store(kernel_.sums(kernel_.steps_per_task), std::memory_order_relaxed);
  });
}

double MultiplyLimit::flops_per_pass() const {
  return kernel_.flops_per_step *
         static_cast<double>(kernel_.steps_per_task * kTasksPerThread * num_threads_);
}

}  // namespace kvick
#endif  // HWY_ONCE
