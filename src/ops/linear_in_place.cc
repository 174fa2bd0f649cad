// Linear for few tokens.
//
// A patch of some rows and tokens is computed at once, which shares loads and hides latency, but
// never changes what happens to one output.
//
// Tried without a gain for one token, 1 thread on a Xeon of family 6 model 207: patches of 1 or 2
// rows (up to a quarter slower), of 8 (no difference beyond noise).

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/highway_targets.h"
#include "ops/linear_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_in_place.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear_units-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// Vectors of sums in registers: half of the 32, or three quarters of the 16. The rest holds
// operands.
constexpr int64_t kSums = HWY_TARGET == HWY_AVX2 ? 12 : 16;
constexpr int64_t kMaxTokens = 4;
constexpr int64_t kMaxRows = 4;

// Parts of the sixteen lanes that are computed together. Where the lanes of several tokens would
// fill the registers, each part has a pass of its own over a block of columns, so that more rows
// share a load of an activation.
constexpr int64_t PartsTogether(int64_t num_tokens) {
  return HWY_TARGET == HWY_AVX2 && num_tokens > 1 ? 1 : kParts;
}

// A power of two, so that patches share kMaxRows rows without a rest.
constexpr int64_t NumRows(int64_t num_tokens) {
  int64_t num_rows = kMaxRows;
  while (num_rows > 1 && num_rows * num_tokens * PartsTogether(num_tokens) > kSums) num_rows /= 2;
  return num_rows;
}

// How far ahead of its use a weight is prefetched, all rows of a patch together. One thread of a
// 2-core Xeon (family 6 model 207) reads at most 16.3 GB/s. For one token and four rows, bf16
// reached 77 % of that without prefetching, 91 % with 1024 or 1536 bytes a row, 88 % with 512 and
// 80 % with 4096. A patch prefetches each line once.
constexpr int64_t kAheadBytes = 4096;

struct Range {
  int64_t begin, end;
};

// A patch of outputs: kRows rows of w by kTokens rows of x.
template <class Unit, int kTerms, int64_t kRows, int64_t kTokens>
class Patch {
 public:
  Patch(const LinearTask& task, int64_t first_row, int64_t first_token)
      : args_(*task.args), first_row_(first_row), first_token_(first_token) {
    for (int64_t r = 0; r < kRows; ++r) w_[r] = args_.w.data + (first_row + r) * task.row_bytes;
    for (int64_t t = 0; t < kTokens; ++t) x_[t] = task.x->Row(first_token + t);
  }

  HWY_INLINE void Compute() {
    Sums sums;
    for (auto& row : sums)
      for (F32x16& sum : row) sum = ZeroF32x16();
    const int64_t num_steps = args_.w.num_cols / kStepColumns;
    const int64_t block_steps = kPartsTogether == kParts ? num_steps : kBlockColumns / kStepColumns;
    for (int64_t step = 0; step < num_steps; step += block_steps) {
      const Range steps{step, std::min(step + block_steps, num_steps)};
      for (int64_t part = 0; part < kParts; part += kPartsTogether) AddSteps(steps, part, sums);
    }
    if (args_.w.num_cols % kStepColumns != 0) AddTail(num_steps, sums);
    Store(sums);
  }

 private:
  using Sums = F32x16[kRows][kTokens];
  static constexpr int64_t kStepColumns = StepColumns(Unit::kFormat);
  static constexpr int64_t kPartsTogether = PartsTogether(kTokens);
  static constexpr int64_t kBlockColumns = 1024;
  using PartSums = F32Vector[kPartsTogether][kRows][kTokens];

  // Prefetches ahead in each row; past its end, at the beginning of the row that follows it in the
  // next patch.
  HWY_INLINE void PrefetchAhead(int64_t offset, int64_t row_bytes) const {
    int64_t ahead = offset + kAheadBytes / kRows;
    if (ahead >= row_bytes) ahead += (kRows - 1) * row_bytes;
    for (int64_t r = 0; r < kRows; ++r) hwy::Prefetch(w_[r] + ahead);
  }

  // Parts [first_part, first_part + kPartsTogether) of the sums. The first pass over the weights
  // prefetches.
  HWY_INLINE void AddSteps(const Range& steps, int64_t first_part, Sums& sums) const {
    PartSums part_sums;
    Copy(sums, first_part, part_sums);
    constexpr int64_t kLineSteps = std::max<int64_t>(1, 64 / Unit::kWeightBytes);
    const int64_t row_bytes = args_.w.num_cols * Unit::kWeightBytes / kStepColumns;
    int64_t step = steps.begin;
    for (; step + kLineSteps <= steps.end; step += kLineSteps) {
      if (first_part == 0) PrefetchAhead(step * Unit::kWeightBytes, row_bytes);
      for (int64_t i = step; i < step + kLineSteps; ++i) {
        AddStep(w_, i * Unit::kWeightBytes, {i, first_part}, part_sums);
      }
    }
    for (; step < steps.end; ++step) {
      AddStep(w_, step * Unit::kWeightBytes, {step, first_part}, part_sums);
    }
    CopyBack(part_sums, first_part, sums);
  }

  static HWY_INLINE void Copy(const Sums& sums, int64_t first_part, PartSums& part_sums) {
    for (int64_t p = 0; p < kPartsTogether; ++p)
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t t = 0; t < kTokens; ++t) part_sums[p][r][t] = sums[r][t].part[first_part + p];
  }

  static HWY_INLINE void CopyBack(const PartSums& part_sums, int64_t first_part, Sums& sums) {
    for (int64_t p = 0; p < kPartsTogether; ++p)
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t t = 0; t < kTokens; ++t) sums[r][t].part[first_part + p] = part_sums[p][r][t];
  }

  struct StepAt {
    int64_t step, first_part;
  };

  HWY_INLINE void AddStep(const std::byte* const (&w)[kRows], int64_t offset, const StepAt& at,
                          PartSums& sums) const {
    for (int64_t p = 0; p < kPartsTogether; ++p) {
      for (int64_t i = 0; i < kTerms * Unit::kVectors; ++i) {
        AddVector(w, offset, {at.step, at.first_part + p}, i, sums[p]);
      }
    }
  }

  HWY_INLINE void AddVector(const std::byte* const (&w)[kRows], int64_t offset, const StepAt& at,
                            int64_t i, F32Vector (&sums)[kRows][kTokens]) const {
    const int64_t vector = i % Unit::kVectors, term = i / Unit::kVectors, part = at.first_part;
    typename Unit::Operand x[kTokens];
    for (int64_t t = 0; t < kTokens; ++t) {
      const std::byte* step = x_[t] + (at.step * kTerms + term) * StepBytes(Unit::kFormat);
      x[t] = Unit::LoadActivations(step, vector, part);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      const auto weights = Unit::LoadWeights(w[r] + offset, vector, part);
      for (int64_t t = 0; t < kTokens; ++t) Unit::Add(weights, x[t], sums[r][t]);
    }
  }

  // The last columns, filled up with zeros to a whole step.
  HWY_INLINE void AddTail(int64_t step, Sums& sums) const {
    const int64_t offset = step * Unit::kWeightBytes;
    const int64_t row_bytes = args_.w.num_cols * Unit::kWeightBytes / kStepColumns;
    HWY_ALIGN std::byte tails[kRows][64] = {};
    const std::byte* w[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(tails[r], w_[r] + offset, static_cast<size_t>(row_bytes - offset));
      w[r] = tails[r];
    }
    for (int64_t part = 0; part < kParts; part += kPartsTogether) {
      PartSums part_sums;
      Copy(sums, part, part_sums);
      AddStep(w, 0, {step, part}, part_sums);
      CopyBack(part_sums, part, sums);
    }
  }

  HWY_INLINE void Store(const Sums& sums) const {
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t row = first_row_ + r;
      for (int64_t t = 0; t < kTokens; ++t) {
        const float sum = SumLanes(sums[r][t]);
        float& y = args_.y[(first_token_ + t) * args_.w.num_rows + row];
        y = args_.bias == nullptr ? sum : sum + args_.bias[row];
      }
    }
  }

  const LinearArgs& args_;
  int64_t first_row_;
  int64_t first_token_;
  const std::byte* w_[kRows];
  const std::byte* x_[kTokens];
};

// Rows [begin, end) of the task, for kTokens tokens.
template <class Unit, int kTerms, int64_t kTokens>
void ComputePatches(const LinearTask& task, const Range& rows, int64_t first_token) {
  constexpr int64_t kRows = NumRows(kTokens);
  int64_t row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows) {
    Patch<Unit, kTerms, kRows, kTokens>(task, row, first_token).Compute();
  }
  for (; row < rows.end; ++row) {
    Patch<Unit, kTerms, 1, kTokens>(task, row, first_token).Compute();
  }
}

// As many tokens at a time as registers hold, or one less, so that no group is small.
template <class Unit, int kTerms>
void ComputeRows(const LinearTask& task, const Range& rows, const Range& tokens) {
  const int64_t num_tokens = tokens.end - tokens.begin;
  const int64_t num_groups = CeilDiv(num_tokens, kMaxTokens);
  for (int64_t group = 0; group < num_groups; ++group) {
    const int64_t begin = tokens.begin + group * num_tokens / num_groups;
    const int64_t end = tokens.begin + (group + 1) * num_tokens / num_groups;
    switch (end - begin) {
      case 4:
        ComputePatches<Unit, kTerms, 4>(task, rows, begin);
        break;
      case 3:
        ComputePatches<Unit, kTerms, 3>(task, rows, begin);
        break;
      case 2:
        ComputePatches<Unit, kTerms, 2>(task, rows, begin);
        break;
      default:
        ComputePatches<Unit, kTerms, 1>(task, rows, begin);
    }
  }
}

// A few rows come from memory for the first tokens, and from the L1 cache for the other ones of a
// block of tokens.
template <class Unit, int kTerms>
void ComputeTask(const LinearTask& task) {
  constexpr int64_t kBlockTokens = 8;
  const int64_t num_tokens = task.args->num_tokens;
  for (int64_t token = 0; token < num_tokens; token += kBlockTokens) {
    const Range tokens{token, std::min(token + kBlockTokens, num_tokens)};
    for (int64_t row = task.begin_row; row < task.end_row; row += kMaxRows) {
      ComputeRows<Unit, kTerms>(task, {row, std::min(row + kMaxRows, task.end_row)}, tokens);
    }
  }
}

template <class Unit>
void RunTerms(const LinearTask& task) {
  if (task.x->num_terms == 2) return ComputeTask<Unit, 2>(task);
  ComputeTask<Unit, 1>(task);
}

void RunTask(const LinearTask& task) {
#if HWY_TARGET == HWY_AVX3
  if (task.has_bf16_dot) return RunTerms<DotUnit>(task);
#endif
  switch (task.args->w.type) {
    case WeightType::kF32:
      return ComputeTask<F32Unit<DType::kF32>, 1>(task);
    case WeightType::kF16:
      return ComputeTask<F32Unit<DType::kF16>, 1>(task);
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

void MultiplyInPlace(Isa isa, const LinearTask& task) { KVICK_FOR_ISA(isa, RunTask)(task); }

}  // namespace kvick
#endif  // HWY_ONCE
