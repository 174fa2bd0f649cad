#include "ops/linear.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/highway_targets.h"
#include "base/threads.h"
#include "ops/linear_tiles.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/simd_load-inl.h"
#include "base/sum_lanes-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

// One output is one vector of f32 sums: lane j adds the products of k = j, j + lanes,
// j + 2 * lanes, ... in ascending order, then SumLanes adds the lanes. A patch of some rows and
// tokens is computed at once, which shares loads and hides latency, but never changes what happens
// to one output.
//
// q8_0: a weight is scale * quant, which is exact in f32. On AVX2 the scale is applied later, sum
// += scale * (the sum of the products of a block's quants, by FMA in ascending order): a block then
// takes 4 conversions and 5 operations per token instead of 8 and 4. On AVX-512, where it would be
// 2 and 3 instead of 4 and 2, and on scalars, the scale is applied to the weights.
//
// Tried without a gain for one token, 1 thread on a Xeon of family 6 model 207: patches of 1 or 2
// rows (up to a quarter slower), of 8 (no difference beyond noise); for q8_0, converting the scales
// of 16 to 64 blocks at once (a gather: slower, as it touches lines before they have arrived).

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;
constexpr int64_t kLanes = hn::MaxLanes(F32Tag());

// Outputs in registers at once: half of the 32 registers, or of the 16. The rest holds operands.
constexpr int kSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;
constexpr int kMaxTokens = 4;
constexpr int kMaxRows = 4;
constexpr int NumRows(int num_tokens) { return std::min(kMaxRows, kSums / num_tokens); }

// How far ahead of its use a weight is prefetched. One thread of a 2-core Xeon (family 6 model 207)
// reads at most 16.3 GB/s. For one token, bf16 reached 77 % of that without prefetching, 91 % with
// 1024 or 1536, 88 % with 512 and 80 % with 4096. A patch prefetches each line once; for q8_0,
// whose blocks are shorter than a line, about twice.
constexpr int64_t kAheadBytes = 1024;

// The scales of the blocks that begin `offset` bytes into the rows: one conversion for all of them,
// stored to memory, because a broadcast from memory is part of a load. One by one, each took 3
// vector operations beside the 12 of its block.
template <int kRows>
HWY_INLINE void LoadQ8Scales(const std::byte* const (&rows)[kRows], int64_t offset,
                             float (&scales)[kMaxRows]) {
  uint16_t bits[kMaxRows] = {};
  for (int r = 0; r < kRows; ++r) std::memcpy(&bits[r], rows[r] + offset, sizeof(bits[r]));
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < kRows; ++r) scales[r] = F16ToF32(bits[r]);
#else
  static_assert(kMaxRows == 4);
  const uint64_t all =
      bits[0] | uint64_t{bits[1]} << 16 | uint64_t{bits[2]} << 32 | uint64_t{bits[3]} << 48;
  const hn::FixedTag<float, kMaxRows> d;
  const hn::FixedTag<hwy::float16_t, kMaxRows> d16;
  const auto halves = hn::BitCast(d16, hn::Set(hn::FixedTag<uint64_t, 1>(), all));
  hn::Store(hn::PromoteTo(d, halves), d, scales);
  // Otherwise the compiler shuffles them out of the register, which takes two operations each.
  asm("" : "+m"(scales));
#endif
}

// Quants [k, k + lanes) of a block of q8_0. A byte is never unaligned.
HWY_INLINE F32Vector Q8Quants(const std::byte* block, int64_t k) {
  const auto* quants = reinterpret_cast<const int8_t*>(block + sizeof(uint16_t)) + k;
  const auto bytes = hn::LoadU(hn::Rebind<int8_t, F32Tag>(), quants);
  return hn::ConvertTo(kTag, hn::PromoteTo(hn::Rebind<int32_t, F32Tag>(), bytes));
}

// A patch of outputs: kRows rows of w by kTokens rows of x.
template <DType kType, int kRows, int kTokens>
class Patch {
 public:
  Patch(const LinearArgs& args, int64_t row_bytes, int64_t first_row, int64_t first_token)
      : args_(args), first_row_(first_row), first_token_(first_token) {
    for (int r = 0; r < kRows; ++r) w_[r] = args.w.data + (first_row + r) * row_bytes;
    for (int t = 0; t < kTokens; ++t) x_[t] = args.x + (first_token + t) * args.w.num_cols;
  }

  HWY_INLINE void Compute() {
    F32Vector sums[kRows][kTokens];
    for (auto& row : sums)
      for (F32Vector& sum : row) sum = hn::Zero(kTag);
    if constexpr (kType == DType::kQ8_0) {
      AddBlocks(sums);
    } else {
      AddVectors(sums);
    }
    Store(sums);
  }

 private:
  static constexpr int64_t kBytes = kElementBytes<kType>;  // of a weight; not for q8_0
  using Sums = F32Vector[kRows][kTokens];

  static HWY_INLINE void AddProducts(const F32Vector (&w)[kRows], const float* const (&x)[kTokens],
                                     int64_t k, Sums& sums) {
    for (int t = 0; t < kTokens; ++t) {
      const F32Vector x_lanes = hn::LoadU(kTag, x[t] + k);
      for (int r = 0; r < kRows; ++r) sums[r][t] = hn::MulAdd(w[r], x_lanes, sums[r][t]);
    }
  }

  // Prefetches kAheadBytes ahead in each row; past its end, at the beginning of the row that
  // follows it in the next patch.
  HWY_INLINE void PrefetchAhead(int64_t offset, int64_t row_bytes) const {
    int64_t ahead = offset + kAheadBytes;
    if (ahead >= row_bytes) ahead += (kRows - 1) * row_bytes;
    for (int r = 0; r < kRows; ++r) hwy::Prefetch(w_[r] + ahead);
  }

  HWY_INLINE void AddBlocks(Sums& sums) const {
    const int64_t num_blocks = args_.w.num_cols / kQ8BlockWeights;
    for (int64_t block_idx = 0; block_idx < num_blocks; ++block_idx) {
      const int64_t block_offset = block_idx * kQ8BlockBytes;
      PrefetchAhead(block_offset, num_blocks * kQ8BlockBytes);
      HWY_ALIGN float scales[kMaxRows];
      LoadQ8Scales(w_, block_offset, scales);
      if constexpr (kScalesSums) {
        for (int r = 0; r < kRows; ++r) {
          AddBlock(w_[r] + block_offset, scales[r], block_idx * kQ8BlockWeights, sums[r]);
        }
      } else {
        for (int64_t k = 0; k < kQ8BlockWeights; k += kLanes) {
          F32Vector w[kRows];
          for (int r = 0; r < kRows; ++r)
            w[r] = hn::Mul(hn::Set(kTag, scales[r]), Q8Quants(w_[r] + block_offset, k));
          AddProducts(w, x_, block_idx * kQ8BlockWeights + k, sums);
        }
      }
    }
  }

  // One row's block, whose first column is k: the quants' products first, then their scale.
  static constexpr bool kScalesSums = kLanes == 8;
  HWY_INLINE void AddBlock(const std::byte* block, float scale, int64_t k,
                           F32Vector (&row_sums)[kTokens]) const {
    constexpr int64_t kVectors = kQ8BlockWeights / kLanes;
    F32Vector quants[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) quants[v] = Q8Quants(block, v * kLanes);
    F32Vector sums[kTokens];
    for (int t = 0; t < kTokens; ++t) sums[t] = hn::Mul(quants[0], hn::LoadU(kTag, x_[t] + k));
    for (int64_t v = 1; v < kVectors; ++v) {
      for (int t = 0; t < kTokens; ++t) {
        sums[t] = hn::MulAdd(quants[v], hn::LoadU(kTag, x_[t] + k + v * kLanes), sums[t]);
      }
    }
    const F32Vector scale_lanes = hn::Set(kTag, scale);
    for (int t = 0; t < kTokens; ++t) row_sums[t] = hn::MulAdd(scale_lanes, sums[t], row_sums[t]);
  }

  HWY_INLINE void AddVectors(Sums& sums) const {
    constexpr int64_t kLineCols = 64 / kBytes;
    const int64_t num_cols = args_.w.num_cols;
    int64_t k = 0;
    for (; k + kLineCols <= num_cols; k += kLineCols) {
      PrefetchAhead(k * kBytes, num_cols * kBytes);
      for (int64_t i = k; i < k + kLineCols; i += kLanes) AddVector(i, sums);
    }
    for (; k + kLanes <= num_cols; k += kLanes) AddVector(k, sums);
    if (k < num_cols) AddTail(k, sums);
  }

  HWY_INLINE void AddVector(int64_t k, Sums& sums) const {
    F32Vector w[kRows];
    for (int r = 0; r < kRows; ++r) w[r] = LoadF32<kType>(kTag, w_[r] + k * kBytes);
    AddProducts(w, x_, k, sums);
  }

  // The last columns, filled up with zeros to a whole vector.
  HWY_INLINE void AddTail(int64_t first_col, Sums& sums) const {
    const int64_t num_cols = args_.w.num_cols - first_col;
    std::byte row_tail[kLanes * kBytes] = {};
    float x_tails[kTokens][kLanes] = {};
    const float* x[kTokens];
    F32Vector w[kRows];
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(row_tail, w_[r] + first_col * kBytes, static_cast<size_t>(num_cols * kBytes));
      w[r] = LoadF32<kType>(kTag, row_tail);
    }
    for (int t = 0; t < kTokens; ++t) {
      std::memcpy(x_tails[t], x_[t] + first_col, static_cast<size_t>(num_cols) * sizeof(float));
      x[t] = x_tails[t];
    }
    AddProducts(w, x, 0, sums);
  }

  HWY_INLINE void Store(const Sums& sums) const {
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = first_row_ + r;
      for (int t = 0; t < kTokens; ++t) {
        const float sum = SumLanes(kTag, sums[r][t]);
        float& y = args_.y[(first_token_ + t) * args_.w.num_rows + row];
        y = args_.bias == nullptr ? sum : sum + args_.bias[row];
      }
    }
  }

  const LinearArgs& args_;
  int64_t first_row_;
  int64_t first_token_;
  const std::byte* w_[kRows];
  const float* x_[kTokens];
};

struct Rows {
  int64_t begin, end;
  int64_t row_bytes;
};

template <DType kType, int kTokens>
void RowsForTokens(const LinearArgs& args, const Rows& rows, int64_t first_token) {
  constexpr int kRows = NumRows(kTokens);
  int64_t row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows)
    Patch<kType, kRows, kTokens>(args, rows.row_bytes, row, first_token).Compute();
  for (; row < rows.end; ++row)
    Patch<kType, 1, kTokens>(args, rows.row_bytes, row, first_token).Compute();
}

template <DType kType>
void RowsForAllTokens(const LinearArgs& args, const Rows& rows) {
  int64_t token = 0;
  for (; token + kMaxTokens <= args.num_tokens; token += kMaxTokens)
    RowsForTokens<kType, kMaxTokens>(args, rows, token);
  switch (args.num_tokens - token) {
    case 3:
      return RowsForTokens<kType, 3>(args, rows, token);
    case 2:
      return RowsForTokens<kType, 2>(args, rows, token);
    case 1:
      return RowsForTokens<kType, 1>(args, rows, token);
  }
}

void LinearRows(const LinearArgs& args, int64_t row_bytes, int64_t begin, int64_t end) {
  const Rows rows{begin, end, row_bytes};
  switch (args.w.dtype) {
    case DType::kF32:
      return RowsForAllTokens<DType::kF32>(args, rows);
    case DType::kF16:
      return RowsForAllTokens<DType::kF16>(args, rows);
    case DType::kBF16:
      return RowsForAllTokens<DType::kBF16>(args, rows);
    case DType::kQ8_0:
      return RowsForAllTokens<DType::kQ8_0>(args, rows);
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {
namespace {

void LinearOnVectors(const Exec& exec, const LinearArgs& args, int64_t row_bytes) {
  const auto linear_rows = KVICK_FOR_ISA(exec.isa, LinearRows);
  const int64_t rows_per_task = WeightRowsPerTask(row_bytes, 4);
  ParallelFor(exec.num_threads, CeilDiv(args.w.num_rows, rows_per_task), [&](int64_t task, int) {
    const int64_t begin = task * rows_per_task;
    linear_rows(args, row_bytes, begin, std::min(begin + rows_per_task, args.w.num_rows));
  });
}

}  // namespace

int64_t LinearScratchBytes(Isa isa, DType dtype, int64_t max_tokens, int64_t num_cols) {
  KVICK_CHECK(max_tokens >= 0 && num_cols >= 1);
  return UsesTiles(isa, dtype) ? TileScratchBytes(max_tokens, num_cols) : 0;
}

void Linear(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch) {
  const MatrixView& w = args.w;
  KVICK_CHECK(args.num_tokens >= 0 && w.num_rows >= 1 && w.num_cols >= 1);
  const std::optional<int64_t> row_bytes = DTypeRowBytes(w.dtype, w.num_cols);
  KVICK_CHECK(row_bytes.has_value());
  KVICK_CHECK(static_cast<int64_t>(scratch.size()) >=
              LinearScratchBytes(exec.isa, w.dtype, args.num_tokens, w.num_cols));
  if (args.num_tokens == 0) return;
#if defined(__x86_64__)
  if (UsesTiles(exec.isa, w.dtype)) {
    return exec.isa == Isa::kAmx ? LinearOnTiles<HardwareTiles>(exec, args, scratch)
                                 : LinearOnTiles<EmulatedTiles>(exec, args, scratch);
  }
#endif
  LinearOnVectors(exec, args, *row_bytes);
}

}  // namespace kvick
#endif  // HWY_ONCE
