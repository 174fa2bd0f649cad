// Linear for many tokens.
//
// A task has a few dozen rows of weights. For 64 tokens, and for blocks of columns, it unpacks a
// panel of a few rows into the L1 cache, as the multiplications take them, and multiplies it by the
// activations of a few tokens at a time, which stay in the L2 cache. Between blocks of columns, the
// sixteen lanes of each sum wait in memory. That changes no operation of a sum.

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/highway_targets.h"
#include "ops/linear_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_panels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear_units-inl.h"

#ifndef KVICK_OPS_LINEAR_PANELS_SIZES
#define KVICK_OPS_LINEAR_PANELS_SIZES
namespace kvick {
namespace {

constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kBlockTokens = 64;
constexpr int64_t kMaxTaskRows = 48;
constexpr int64_t kMaxPanelRows = 6;

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

// Sums in registers: 24 of 32, or 12 of 16; the others hold operands.
#if HWY_TARGET == HWY_AVX2
constexpr int64_t kPanelRows = 4, kMaxTokens = 3;
#elif HWY_TARGET == HWY_SCALAR
constexpr int64_t kPanelRows = 2, kMaxTokens = 2;
#else
constexpr int64_t kPanelRows = 6, kMaxTokens = 4;
#endif
static_assert(kPanelRows <= kMaxPanelRows && kPanelRowMultiple % kPanelRows == 0);

// Weights that are unpacked next, fetched meanwhile: some rows, one step of each at a time.
struct NextRows {
  const std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t num = 0;
};

// Steps [0, num_steps) of a panel and of some tokens.
struct PanelProduct {
  const std::byte* panel;  // [step][row][vector], unpacked
  const std::byte* x;      // first token, first step of the block
  int64_t x_stride;        // bytes from a token to the next
  int64_t num_steps;
  float* sums;    // [token][row][16]
  bool is_first;  // the sums start at zero
  NextRows next;
};

template <class Unit, int kTerms, int kTokens>
void AddPart(const PanelProduct& product, int64_t part) {
  using Multiply = typename Unit::Multiply;
  constexpr int64_t kTokenFloats = kMaxTaskRows * 16;
  const F32Tag d;
  float* const lanes = product.sums + part * kLanes;
  F32Vector sums[kTokens][kPanelRows];
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
      sums[t][r] = product.is_first ? hn::Zero(d) : hn::Load(d, lanes + t * kTokenFloats + r * 16);
    }
  }
  const std::byte* w = product.panel;
  const std::byte* x = product.x;
  for (int64_t step = 0; step < product.num_steps; ++step) {
    for (int64_t r = 0; r < product.next.num; ++r) {
      hwy::Prefetch(product.next.data + r * product.next.stride + step * Unit::kWeightBytes);
    }
    for (int term = 0; term < kTerms; ++term) {
      for (int64_t v = 0; v < Unit::kVectors; ++v, x += kVectorBytes) {
        typename Multiply::Operand rows[kPanelRows];
        for (int64_t r = 0; r < kPanelRows; ++r) {
          rows[r] = Multiply::Load(w + (r * Unit::kVectors + v) * kVectorBytes, part);
        }
        for (int64_t t = 0; t < kTokens; ++t) {
          const auto token = Multiply::Load(x + t * product.x_stride, part);
          for (int64_t r = 0; r < kPanelRows; ++r) Multiply::Add(rows[r], token, sums[t][r]);
        }
      }
    }
    w += kPanelRows * Unit::kVectors * kVectorBytes;
  }
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
      hn::Store(sums[t][r], d, lanes + t * kTokenFloats + r * 16);
    }
  }
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

  // Rows past the end of the task are those before it, and their sums are not used.
  void UnpackPanel(int64_t first_row, const Block& block) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
      const std::byte* w = WeightsAt(std::min(first_row + r, task_.end_row - 1), block.first_step);
      std::byte* out = scratch_.panel + r * Unit::kVectors * kVectorBytes;
      const int64_t num_columns = args_.w.num_cols - block.first_step * kStepColumns;
      const int64_t num_whole = std::min(block.num_steps, num_columns / kStepColumns);
      for (int64_t step = 0; step < num_whole; ++step) {
        Unit::Unpack(w + step * Unit::kWeightBytes, out);
        out += kPanelRows * Unit::kVectors * kVectorBytes;
      }
      if (num_whole == block.num_steps) continue;
      std::byte tail[Unit::kWeightBytes] = {};
      const int64_t tail_bytes = num_columns % kStepColumns * Unit::kWeightBytes / kStepColumns;
      std::memcpy(tail, w + num_whole * Unit::kWeightBytes, static_cast<size_t>(tail_bytes));
      Unit::Unpack(tail, out);
    }
  }

  // As many tokens at a time as registers hold, or one less, so that no group is small.
  void MultiplyPanel(int64_t row, const Block& block) {
    const int64_t num_groups = CeilDiv(block.num_tokens, kMaxTokens);
    for (int64_t group = 0; group < num_groups; ++group) {
      const int64_t begin = group * block.num_tokens / num_groups;
      const int64_t end = (group + 1) * block.num_tokens / num_groups;
      const PanelProduct product{
          scratch_.panel,
          x_.Row(block.first_token + begin) + block.first_step * kTerms * StepBytes(Unit::kFormat),
          x_.row_stride,
          block.num_steps,
          scratch_.sums[begin][row - task_.begin_row],
          block.first_step == 0,
          NextRowsFor(group, num_groups, row, block)};
      AddProductOf(end - begin, product);
    }
  }

  // The groups of tokens share the rows of the panel that is unpacked next.
  NextRows NextRowsFor(int64_t group, int64_t num_groups, int64_t row, const Block& block) const {
    int64_t next_row = row + kPanelRows, step = block.first_step;
    if (block.first_token > 0) return {};  // the task's weights are in the caches
    if (next_row >= task_.end_row) {
      next_row = task_.begin_row;
      step += kBlockSteps;
    }
    if (step >= x_.num_steps) {
      next_row = task_.end_row;  // most likely the next task of this thread begins there or near
      step = 0;
    }
    const int64_t share = CeilDiv(kPanelRows, num_groups), first = group * share;
    const int64_t num = std::clamp<int64_t>(kPanelRows - first, 0, share);
    return {WeightsAt(next_row + first, step), task_.row_bytes, num};
  }

  void AddProductOf(int64_t num_tokens, const PanelProduct& product) {
    if constexpr (kMaxTokens >= 4) {
      if (num_tokens == 4) return AddProduct<Unit, kTerms, 4>(product);
    }
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
  if (task.x->format == ActivationFormat::kBF16Pairs) return RunTerms<DotUnit>(task);
#endif
  switch (task.args->w.dtype) {
    case DType::kF32:
      return RunTerms<F32Unit<DType::kF32>>(task);
    case DType::kF16:
      return RunTerms<F32Unit<DType::kF16>>(task);
    case DType::kBF16:
      return RunTerms<PairUnit>(task);
    case DType::kQ8_0:
      KVICK_CHECK(false && "q8_0 has no panels");
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

// In place, a group of four tokens converts the weights once; panels do so once for all groups, but
// store them too.
int64_t MinPanelTokens(Isa, DType dtype) {
  return dtype == DType::kQ8_0 ? std::numeric_limits<int64_t>::max() : 5;
}

int64_t PanelScratchBytes() { return sizeof(PanelScratch); }

void MultiplyInPanels(Isa isa, const LinearTask& task) {
  KVICK_CHECK(task.end_row - task.begin_row <= kMaxTaskRows);
  KVICK_FOR_ISA(isa, RunTask)(task);
}

}  // namespace kvick
#endif  // HWY_ONCE
