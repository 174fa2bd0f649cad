// Linear for many tokens.
//
// A task has a few dozen rows of weights. For up to 128 tokens, and for blocks of columns, it
// unpacks a panel of a few rows into the L1 cache, as the multiplications take them, and multiplies
// it by the activations of a few tokens at a time, which stay in the L2 cache. Between blocks of
// columns, the sixteen lanes of each sum wait in memory. That changes no operation of a sum.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/highway_targets.h"
#include "ops/linear_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_panels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/prefetch-inl.h"
#include "hwy/highway.h"
#include "ops/linear_units-inl.h"

#ifndef KVICK_OPS_LINEAR_PANELS_SIZES
#define KVICK_OPS_LINEAR_PANELS_SIZES

// A lambda of a target that is a piece of its caller, whatever the compiler thinks of its size.
#define KVICK_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

namespace kvick {
namespace {

constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kBlockTokens = 128;
constexpr int64_t kMaxTaskRows = 56;
constexpr int64_t kMaxPanelRows = 7;

// The scratch memory of a thread.
struct PanelScratch {
  alignas(64) std::byte panel[kBlockColumns * kMaxPanelRows * sizeof(float)];
  alignas(64) float sums[kBlockTokens][kMaxTaskRows][16];
};

}  // namespace
}  // namespace kvick
#endif

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// Sums in registers: 21 of 32, or 12 of 16; the others hold operands.
#if HWY_TARGET == HWY_AVX2
constexpr int kPanelRows = 4, kMaxTokens = 3;
#elif HWY_TARGET == HWY_SCALAR
constexpr int kPanelRows = 2, kMaxTokens = 2;
#else
constexpr int kPanelRows = 7, kMaxTokens = 3;
#endif
static_assert(kPanelRows <= kMaxPanelRows && kPanelRowMultiple % kPanelRows == 0);

// What is fetched into the caches meanwhile: a cache line of each row with each step.
struct AheadRows {
  const std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t num = 0;

  HWY_INLINE void Prefetch(int64_t step) const {
    for (int64_t r = 0; r < num; ++r) PrefetchToL2(data + r * stride + step * 64);
  }
};

// Otherwise the compiler loads a row again with each multiplication, and loads become the limit (40
// % of the FMA peak instead of 60).
template <class V>
HWY_INLINE V InRegister(V vector) {
#if HWY_ARCH_X86
  auto raw = vector.raw;
  asm("" : "+v"(raw));
  vector.raw = raw;
#elif HWY_ARCH_ARM_A64 && HWY_TARGET != HWY_SCALAR
  auto raw = vector.raw;
  asm("" : "+w"(raw));
  vector.raw = raw;
#endif
  return vector;
}

// Steps [0, num_steps) of a panel and of some tokens.
struct PanelProduct {
  const std::byte* panel;  // [step][row][vector], unpacked
  const std::byte* x;      // first token, first step of the block
  int64_t x_stride;        // bytes from a token to the next
  int64_t num_steps;
  float* sums;    // [token][row][16]
  bool is_first;  // sums start at zero, not at what `sums` holds
  AheadRows weights_ahead;
  AheadRows x_ahead;
};

// Calls body(0), ..., body(kNum - 1), unrolled from the start: the compiler keeps arrays of vectors
// in registers only if it never sees a variable index.
template <int kNum, class Body>
HWY_INLINE void Unrolled(const Body& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) KVICK_INLINE_LAMBDA {
    (body(std::integral_constant<int, kIndex>()), ...);
  }
  (std::make_integer_sequence<int, kNum>());
}

template <class Unit, int kTerms, int kTokens>
void AddPart(const PanelProduct& product, int64_t part) {
  using Operand = typename Unit::Operand;
  F32Vector sums[kTokens][kPanelRows];
  const auto for_each_sum = [&](const auto& body) KVICK_INLINE_LAMBDA {
    float* const lanes = product.sums + part * kLanes;
    Unrolled<kTokens>([&](auto t) KVICK_INLINE_LAMBDA {
      Unrolled<kPanelRows>([&](auto r) KVICK_INLINE_LAMBDA {
        body(sums[t][r], lanes + (t * kMaxTaskRows + r) * 16);
      });
    });
  };
  if (product.is_first) {
    for_each_sum([](F32Vector& sum, float*) KVICK_INLINE_LAMBDA { sum = hn::Zero(F32Tag()); });
  } else {
    for_each_sum([](F32Vector& sum, float* lanes)
                     KVICK_INLINE_LAMBDA { sum = hn::Load(F32Tag(), lanes); });
  }
  const std::byte* w = product.panel;
  const std::byte* x = product.x;
  for (int64_t step = 0; step < product.num_steps; ++step) {
    product.weights_ahead.Prefetch(step);
    product.x_ahead.Prefetch(step);
    Unrolled<kTerms * Unit::kVectors>([&](auto i) KVICK_INLINE_LAMBDA {
      constexpr int kVector = i % Unit::kVectors, kTerm = i / Unit::kVectors;
      Operand rows[kPanelRows];
      Unrolled<kPanelRows>([&](auto r) KVICK_INLINE_LAMBDA {
        rows[r] =
            InRegister(Unit::LoadPanel(w + (r * Unit::kVectors + kVector) * kVectorBytes, part));
      });
      Unrolled<kTokens>([&](auto t) KVICK_INLINE_LAMBDA {
        const std::byte* token = x + t * product.x_stride + kTerm * StepBytes(Unit::kFormat);
        const Operand activations = Unit::LoadActivations(token, kVector, part);
        Unrolled<kPanelRows>(
            [&](auto r) KVICK_INLINE_LAMBDA { Unit::Add(rows[r], activations, sums[t][r]); });
      });
    });
    w += kPanelRows * Unit::kVectors * kVectorBytes;
    x += kTerms * StepBytes(Unit::kFormat);
  }
  for_each_sum([](F32Vector sum, float* lanes)
                   KVICK_INLINE_LAMBDA { hn::Store(sum, F32Tag(), lanes); });
}

template <class Unit, int kTerms, int kTokens>
void AddProduct(const PanelProduct& product) {
  for (int64_t part = 0; part < kParts; ++part) AddPart<Unit, kTerms, kTokens>(product, part);
}

template <class Unit, int kTerms>
class PanelTask {
 public:
  explicit PanelTask(const LinearTask& task)
      : task_(task),
        args_(*task.args),
        x_(*task.x),
        scratch_(*reinterpret_cast<PanelScratch*>(task.scratch)) {}

  void Run() {
    for (int64_t token = 0; token < args_.num_tokens; token += kBlockTokens) {
      const int64_t num_tokens = std::min(kBlockTokens, args_.num_tokens - token);
      for (int64_t step = 0; step < x_.num_steps; step += kBlockSteps) {
        RunBlock({token, num_tokens, step, std::min(kBlockSteps, x_.num_steps - step)});
      }
      WriteOut(token, num_tokens);
    }
  }

 private:
  static constexpr int64_t kStepColumns = StepColumns(Unit::kFormat);
  static constexpr int64_t kBlockSteps = kBlockColumns / kStepColumns;

  struct Block {
    int64_t first_token, num_tokens;
    int64_t first_step, num_steps;
  };

  void RunBlock(const Block& block) {
    for (int64_t row = task_.begin_row; row < task_.end_row; row += kPanelRows) {
      UnpackPanel(row, block);
      MultiplyPanel(row, block);
    }
  }

  const std::byte* WeightsAt(int64_t row, int64_t step) const {
    return args_.w.data + row * task_.row_bytes + step * Unit::kWeightBytes;
  }

  const std::byte* ActivationsAt(int64_t token, int64_t step) const {
    return x_.Row(token) + step * kTerms * StepBytes(Unit::kFormat);
  }

  // Rows past the end of the task are those before it, and their sums are not used.
  void UnpackPanel(int64_t first_row, const Block& block) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
      const std::byte* w = WeightsAt(std::min(first_row + r, task_.end_row - 1), block.first_step);
      std::byte* out = scratch_.panel + r * Unit::kVectors * kVectorBytes;
      const int64_t num_columns = args_.w.num_cols - block.first_step * kStepColumns;
      const int64_t num_whole = std::min(block.num_steps, num_columns / kStepColumns);
      for (int64_t step = 0; step < num_whole; ++step) {
        UnpackStep<Unit>(w + step * Unit::kWeightBytes, out);
        out += kPanelRows * Unit::kVectors * kVectorBytes;
      }
      if (num_whole == block.num_steps) continue;
      std::byte tail[Unit::kWeightBytes] = {};
      const int64_t tail_bytes = num_columns % kStepColumns * Unit::kWeightBytes / kStepColumns;
      std::memcpy(tail, w + num_whole * Unit::kWeightBytes, static_cast<size_t>(tail_bytes));
      UnpackStep<Unit>(tail, out);
    }
  }

  // As many tokens at a time as registers hold, or one less, so that no group is small.
  void MultiplyPanel(int64_t row, const Block& block) {
    const int64_t num_groups = CeilDiv(block.num_tokens, kMaxTokens);
    for (int64_t group = 0; group < num_groups; ++group) {
      const int64_t begin = group * block.num_tokens / num_groups;
      const int64_t end = (group + 1) * block.num_tokens / num_groups;
      const PanelProduct product{scratch_.panel,
                                 ActivationsAt(block.first_token + begin, block.first_step),
                                 x_.row_stride,
                                 block.num_steps,
                                 scratch_.sums[begin][row - task_.begin_row],
                                 block.first_step == 0,
                                 WeightsAhead(group, num_groups, row, block),
                                 ActivationsAhead(begin, end, row, block)};
      AddProductOf(end - begin, product);
    }
  }

  // The panel that is unpacked next, the rows of which are shared among the groups of tokens. Of a
  // later block of tokens the weights are in the caches.
  AheadRows WeightsAhead(int64_t group, int64_t num_groups, int64_t row, const Block& block) const {
    int64_t next_row = row + kPanelRows, step = block.first_step;
    if (block.first_token > 0) return {};
    if (next_row >= task_.end_row) {
      next_row = task_.begin_row;
      step += kBlockSteps;
    }
    if (step >= x_.num_steps) {
      next_row = task_.end_row;  // a later task begins there
      step = 0;
    }
    const int64_t share = CeilDiv(kPanelRows, num_groups), first = group * share;
    const int64_t num = std::clamp<int64_t>(kPanelRows - first, 0, share);
    return {WeightsAt(next_row + first, step), task_.row_bytes, num};
  }

  // With the last panel of a block, the same tokens' activations of the next block.
  AheadRows ActivationsAhead(int64_t begin, int64_t end, int64_t row, const Block& block) const {
    const bool is_last_panel = row + kPanelRows >= task_.end_row;
    const int64_t next_step = block.first_step + kBlockSteps;
    if (!is_last_panel || next_step >= x_.num_steps) return {};
    return {ActivationsAt(block.first_token + begin, next_step), x_.row_stride, end - begin};
  }

  void AddProductOf(int64_t num_tokens, const PanelProduct& product) {
    if constexpr (kMaxTokens >= 3) {
      if (num_tokens == 3) return AddProduct<Unit, kTerms, 3>(product);
    }
    if (num_tokens == 2) return AddProduct<Unit, kTerms, 2>(product);
    AddProduct<Unit, kTerms, 1>(product);
  }

  void WriteOut(int64_t first_token, int64_t num_tokens) {
    const int64_t num_rows = task_.end_row - task_.begin_row;
    for (int64_t t = 0; t < num_tokens; ++t) {
      float* y = args_.y + (first_token + t) * args_.w.num_rows + task_.begin_row;
      int64_t row = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
      for (; row + kLanes <= num_rows; row += kLanes) SumRows(t, row, y);
#endif
      for (; row < num_rows; ++row) SumRow(t, row, y);
    }
  }

  F32x16 SumsOf(int64_t token, int64_t row) const {
    F32x16 sums;
    for (int64_t p = 0; p < kParts; ++p) {
      sums.part[p] = hn::Load(F32Tag(), scratch_.sums[token][row] + p * kLanes);
    }
    return sums;
  }

  void SumRow(int64_t token, int64_t row, float* y) const {
    const float sum = SumLanes(SumsOf(token, row));
    y[row] = args_.bias == nullptr ? sum : sum + args_.bias[task_.begin_row + row];
  }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // kLanes rows at once: the additions of SumLanes, with a third of its shuffles.
  void SumRows(int64_t token, int64_t row, float* y) const {
    const F32Tag d;
    F32Vector lanes[kLanes];
    for (int64_t r = 0; r < kLanes; ++r) lanes[r] = SumParts(SumsOf(token, row + r));
    F32Vector sums = SumLanesOfEach(d, lanes);
    if (args_.bias != nullptr) {
      sums = hn::Add(sums, hn::LoadU(d, args_.bias + task_.begin_row + row));
    }
    hn::StoreU(sums, d, y + row);
  }
#endif

  const LinearTask& task_;
  const LinearArgs& args_;
  const PackedActivations& x_;
  PanelScratch& scratch_;
};

template <class Unit>
void RunTerms(const LinearTask& task) {
  if constexpr (Unit::kFormat != ActivationFormat::kF32) {
    if (task.x->num_terms == 2) return PanelTask<Unit, 2>(task).Run();
  }
  PanelTask<Unit, 1>(task).Run();
}

void RunTask(const LinearTask& task) {
#if HWY_TARGET == HWY_AVX3
  if (task.has_bf16_dot) return RunTerms<DotUnit>(task);
  if (task.x->format == ActivationFormat::kBF16Pairs) {
    return RunTerms<PairUnit<ActivationFormat::kBF16Pairs>>(task);
  }
#endif
  switch (task.args->w.type) {
    case WeightType::kF32:
      return RunTerms<F32Unit<DType::kF32>>(task);
    case WeightType::kF16:
      return RunTerms<F32Unit<DType::kF16>>(task);
    case WeightType::kBF16:
      return RunTerms<PairUnit<ActivationFormat::kF32Pairs>>(task);
    default:
      KVICK_CHECK(false && "quantized weights have kernels of their own");
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

// Panels unpack a weight once for all tokens, but store it and read it again.
int64_t MinPanelTokens(Isa isa) { return isa == Isa::kAvx2 ? 9 : 13; }

int64_t PanelScratchBytes() { return sizeof(PanelScratch); }

void MultiplyInPanels(Isa isa, const LinearTask& task) {
  KVICK_CHECK(task.end_row - task.begin_row <= kMaxTaskRows);
  KVICK_FOR_ISA(isa, RunTask)(task);
}

}  // namespace kvick
#endif  // HWY_ONCE
