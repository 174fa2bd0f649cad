// The attention kernel over vectors: compiled once for each vector implementation.
//
// Order of operations, for each column on its own:
//   score[s] = scale * tree(lanes of sum_d q[d] k[s][d]), d ascending in pairs of vectors
//   max      = over the visible s: exact in any order
//   p[s]     = exp(score[s] - max);  sum = tree(lanes of sum_s p[s]), s ascending in vector steps
//   out[d]   = sum_s p[s] v[s][d], s ascending
// Products are added by FMA (scalar: a rounded product, then the sum). The two vectors of a pair
// hold consecutive elements; of bf16 those of even and of odd index, unless rows are widened to f32
// first. Several columns share a load of k or v, and several slots the shuffles of their trees;
// that changes no operation of any of them.

#include <algorithm>
#include <cstring>

#include "attention/attention_kernel.h"
#include "attention/chunk_rows.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention_vector.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h: these are compiled once per target too.
#include "attention/prefetch-inl.h"
#include "attention/softmax-inl.h"
#include "base/simd_load-inl.h"
#include "base/sum_lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;
constexpr int64_t kLanes = hn::MaxLanes(F32Tag());
constexpr int64_t kPair = 2 * kLanes;

// Columns that share a load.
constexpr int64_t kTileColumns = 4;

// A tile of scores fills one vector, so that one transposing sum serves all of it.
template <int64_t kColumns>
constexpr int64_t kTileSlots = kLanes >= kColumns ? kLanes / kColumns : 1;

// Accumulators: two FMA ports with a latency of 4 need 8; 32 registers hold 16 and their operands.
constexpr int64_t kSums = HWY_CAP_GE512 ? 16 : 8;

// Vectors of a row of values that are summed at once.
template <int64_t kColumns>
constexpr int64_t kTileVectors = std::min<int64_t>(kSums / kColumns, 8);

int64_t PaddedDim(int64_t head_dim) { return RoundUp(head_dim, kPair); }

template <DType kType>
constexpr int64_t kPairBytes = kPair* kElementBytes<kType>;

template <DType kType>
constexpr bool kPairIsHalfLine = 2 * kPairBytes<kType> == kLineBytes;

// KV heads that are processed together: blocks of 16 tokens then give runs of 32 KiB (D = 128,
// bf16).
constexpr int64_t kMaxHeads = 8;

// From a column's scores to the next: not a multiple of 4 KiB, so that columns do not share sets of
// the L1 cache.
constexpr int64_t kScoreStride = kChunkTokens + 16;

// The layout of a thread's scratch memory, all f32.
struct Scratch {
  float* scores;   // [kMaxHeads, kTileColumns, kScoreStride]
  float* out;      // [kMaxHeads, kTileColumns, kMaxHeadDim], in the order of pairs
  float* widened;  // [kRunSlots, kMaxHeadDim]

  static constexpr int64_t kBytes =
      (kMaxHeads * kTileColumns * (kScoreStride + kMaxHeadDim) + kRunSlots * kMaxHeadDim) *
      static_cast<int64_t>(sizeof(float));

  explicit Scratch(std::byte* memory)
      : scores(reinterpret_cast<float*>(memory)),
        out(scores + kMaxHeads * kTileColumns * kScoreStride),
        widened(out + kMaxHeads * kTileColumns * kMaxHeadDim) {}
};

// The same rows as f32 with zeros up to a whole pair: exact, so no bit of a result changes.
Rows Widen(const Rows& rows, const KvLayout& layout, float* widened) {
  const int64_t padded = PaddedDim(layout.head_dim);
  for (int64_t r = 0; r < rows.num; ++r) {
    float* row = widened + r * padded;
    ConvertToF32(layout.dtype, rows.data + r * rows.stride, layout.head_dim, row);
    std::fill(row + layout.head_dim, row + padded, 0.0f);
  }
  const auto* data = reinterpret_cast<const std::byte*>(widened);
  const int64_t stride = padded * static_cast<int64_t>(sizeof(float));
  return {data, stride, rows.begin, rows.num, {data, data}};
}

// scores[c][s] for kColumns columns and kSlots rows. queries [kColumns, padded_dim].
template <DType kType, int64_t kColumns, int64_t kSlots>
HWY_INLINE void ScoreTile(const float* queries, const Rows& rows, int64_t padded_dim,
                          float* scores) {
  F32Vector sums[kColumns * kSlots];
  for (F32Vector& sum : sums) sum = hn::Zero(kTag);
  for (int64_t i = 0; i < padded_dim; i += kPair) {
    for (int64_t s = 0; s < kSlots; ++s) {
      const int64_t offset = s * rows.stride + i * kElementBytes<kType>;
      const F32Pair k = LoadF32Pair<kType>(kTag, rows.data + offset);
      if constexpr (kPairIsHalfLine<kType>) {
        PrefetchHalf(rows.ahead, offset, i / kPair);
      } else {
        Prefetch(rows.ahead, offset, kPairBytes<kType>);
      }
      for (int64_t c = 0; c < kColumns; ++c) {
        const float* q = queries + c * padded_dim + i;
        F32Vector& sum = sums[c * kSlots + s];
        sum = hn::MulAdd(hn::Load(kTag, q), k.first, sum);
        sum = hn::MulAdd(hn::Load(kTag, q + kLanes), k.second, sum);
      }
    }
  }
  if constexpr (kColumns * kSlots == kLanes) {
    HWY_ALIGN float tile[kLanes];
    hn::Store(SumLanesOfEach(kTag, sums), kTag, tile);
    for (int64_t c = 0; c < kColumns; ++c) {
      std::memcpy(scores + c * kScoreStride, tile + c * kSlots, kSlots * sizeof(float));
    }
  } else {
    for (int64_t c = 0; c < kColumns; ++c) {
      for (int64_t s = 0; s < kSlots; ++s) {
        scores[c * kScoreStride + s] = SumLanes(kTag, sums[c * kSlots + s]);
      }
    }
  }
}

template <DType kType, int64_t kColumns>
void ScoreRows(const float* queries, const Rows& rows, int64_t padded_dim, float* scores) {
  constexpr int64_t kSlots = kTileSlots<kColumns>;
  int64_t s = 0;
  for (; s + kSlots <= rows.num; s += kSlots) {
    ScoreTile<kType, kColumns, kSlots>(queries, rows.Slice(s, kSlots), padded_dim,
                                       scores + rows.begin + s);
  }
  for (; s < rows.num; ++s) {
    ScoreTile<kType, kColumns, 1>(queries, rows.Slice(s, 1), padded_dim, scores + rows.begin + s);
  }
}

// out[c][i .. i + kVectors lanes) += sum_s p[c][s] v[s][...] over the rows.
template <DType kType, int64_t kColumns, int64_t kVectors>
HWY_INLINE void ValueTile(const float* p, const Rows& rows, int64_t i, float* out) {
  F32Vector sums[kColumns][kVectors];
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kVectors; ++n) {
      sums[c][n] = hn::Load(kTag, out + c * kMaxHeadDim + i + n * kLanes);
    }
  }
  for (int64_t s = 0; s < rows.num; ++s) {
    F32Vector v[kVectors];
    for (int64_t n = 0; n < kVectors; n += 2) {
      const int64_t offset = s * rows.stride + (i + n * kLanes) * kElementBytes<kType>;
      const F32Pair pair = LoadF32Pair<kType>(kTag, rows.data + offset);
      if constexpr (kPairIsHalfLine<kType>) {
        const int64_t index = (i + n * kLanes) / kPair;
        PrefetchHalf(rows.ahead, (index / 2 * rows.num + s) * kLineBytes, index);
      } else {
        Prefetch(rows.ahead, offset, kPairBytes<kType>);
      }
      v[n] = pair.first;
      v[n + 1] = pair.second;
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      const F32Vector weight = hn::Set(kTag, p[c * kScoreStride + s]);
      for (int64_t n = 0; n < kVectors; ++n) sums[c][n] = hn::MulAdd(weight, v[n], sums[c][n]);
    }
  }
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kVectors; ++n) {
      hn::Store(sums[c][n], kTag, out + c * kMaxHeadDim + i + n * kLanes);
    }
  }
}

template <DType kType, int64_t kColumns>
void ValueRows(const float* p, const Rows& rows, int64_t padded_dim, float* out) {
  constexpr int64_t kVectors = kTileVectors<kColumns>;
  int64_t i = 0;
  for (; i + kVectors * kLanes <= padded_dim; i += kVectors * kLanes) {
    ValueTile<kType, kColumns, kVectors>(p + rows.begin, rows, i, out);
  }
  for (; i < padded_dim; i += kPair) {
    ValueTile<kType, kColumns, 2>(p + rows.begin, rows, i, out);
  }
}

// Copies elements from the order of pairs to their own order. REQUIRES: whole pairs, or a type
// whose pairs are in order.
template <DType kType>
void FromPairs(const float* in, int64_t num, float* out) {
  if constexpr (!kPairIsEvenOdd<kType>) {
    std::copy_n(in, num, out);
  } else {
    for (int64_t i = 0; i < num; i += kPair) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        out[i + 2 * lane] = in[i + lane];
        out[i + 2 * lane + 1] = in[i + kLanes + lane];
      }
    }
  }
}

// Some columns of each head of a chunk, from queries to partial results. kRowType is that of the
// rows that are computed with: the cache's, or f32 where rows are widened first.
template <DType kRowType, int64_t kColumns>
class ColumnTile {
 public:
  ColumnTile(const ChunkTask& task, int64_t first_column, const PartialResult& result)
      : task_(task),
        first_column_(first_column),
        result_(result),
        scratch_(task.scratch),
        padded_dim_(PaddedDim(task.kv->layout.head_dim)) {
    for (int64_t c = 0; c < kColumns; ++c) num_seen_[c] = task.VisibleHere(first_column + c);
  }

  void Attend() {
    ForEachRows<Side::kKeys>([&](int64_t head, const Rows& rows) {
      ScoreRows<kRowType, kColumns>(Queries(head), rows, padded_dim_, Scores(head));
    });
    for (int64_t head = 0; head < task_.num_kv_heads; ++head) TakeSoftmax(head);
    std::fill_n(scratch_.out, task_.num_kv_heads * kColumns * kMaxHeadDim, 0.0f);
    ForEachRows<Side::kValues>([&](int64_t head, const Rows& rows) { AddValues(head, rows); });
    for (int64_t head = 0; head < task_.num_kv_heads; ++head) WriteOut(head);
  }

 private:
  int64_t seen_by_all() const { return num_seen_[0]; }  // ascending: later tokens see more
  int64_t seen_by_any() const { return num_seen_[kColumns - 1]; }

  int64_t FirstColumn(int64_t head) const { return head * task_.num_columns + first_column_; }
  const float* Queries(int64_t head) const {
    return reinterpret_cast<const float*>(task_.packed_queries) + FirstColumn(head) * padded_dim_;
  }
  float* Scores(int64_t head) const { return scratch_.scores + head * kColumns * kScoreStride; }
  float* Out(int64_t head) const { return scratch_.out + head * kColumns * kMaxHeadDim; }

  // Calls body for the rows that any column sees. The first tile prefetches; the others find the
  // rows in the caches.
  template <Side kSide, class Body>
  void ForEachRows(Body&& body) {
    ForEachRun<kSide>(task_, seen_by_any(), [&](int64_t head, Rows rows) {
      if (first_column_ > 0) rows.ahead = {rows.data, rows.data};
      if (kRowType != task_.kv->layout.dtype || padded_dim_ != task_.kv->layout.head_dim) {
        rows = Widen(rows, task_.kv->layout, scratch_.widened);
      }
      body(head, rows);
    });
  }

  void TakeSoftmax(int64_t head) {
    for (int64_t c = 0; c < kColumns; ++c) {
      if (num_seen_[c] == 0) continue;
      float* scores = Scores(head) + c * kScoreStride;
      const SoftmaxResult softmax =
          Softmax(scores, {num_seen_[c], num_seen_[c]}, task_.scale,
                  [&](F32Vector p, int64_t s) { hn::Store(p, kTag, scores + s); });
      result_.max[FirstColumn(head) + c] = softmax.max;
      result_.sum[FirstColumn(head) + c] = softmax.sum;
    }
  }

  void AddValues(int64_t head, const Rows& rows) {
    const int64_t num_common = std::clamp<int64_t>(seen_by_all() - rows.begin, 0, rows.num);
    if (num_common > 0) {
      ValueRows<kRowType, kColumns>(Scores(head), rows.Slice(0, num_common), padded_dim_,
                                    Out(head));
    }
    for (int64_t c = 0; c < kColumns; ++c) {  // the positions that only later tokens see
      const int64_t num = std::clamp<int64_t>(num_seen_[c] - rows.begin, 0, rows.num) - num_common;
      if (num <= 0) continue;
      ValueRows<kRowType, 1>(Scores(head) + c * kScoreStride, rows.Slice(num_common, num),
                             padded_dim_, Out(head) + c * kMaxHeadDim);
    }
  }

  void WriteOut(int64_t head) {
    const int64_t head_dim = task_.kv->layout.head_dim;
    for (int64_t c = 0; c < kColumns; ++c) {
      if (num_seen_[c] == 0) continue;
      float* out = result_.out + (FirstColumn(head) + c) * head_dim;
      FromPairs<kRowType>(Out(head) + c * kMaxHeadDim, head_dim, out);
    }
  }

  const ChunkTask& task_;
  int64_t first_column_;
  const PartialResult& result_;
  Scratch scratch_;
  int64_t padded_dim_;
  int64_t num_seen_[kColumns];
};

template <DType kRowType>
void AttendColumns(const ChunkTask& task, const PartialResult& result) {
  int64_t c = 0;
  for (; c + kTileColumns <= task.num_columns; c += kTileColumns) {
    ColumnTile<kRowType, kTileColumns>(task, c, result).Attend();
  }
  if (c + 2 <= task.num_columns) {
    ColumnTile<kRowType, 2>(task, c, result).Attend();
    c += 2;
  }
  if (c < task.num_columns) ColumnTile<kRowType, 1>(task, c, result).Attend();
}

template <DType kType>
void AttendChunk(const ChunkTask& task, const PartialResult& result) {
  const int64_t head_dim = task.kv->layout.head_dim;
  if (PaddedDim(head_dim) == head_dim) return AttendColumns<kType>(task, result);
  AttendColumns<DType::kF32>(task, result);
}

// [num][padded_dim] f32 in the order of pairs, zeros after head_dim.
template <DType kType>
void PackQueries(const QueryColumns& columns, std::byte* packed) {
  const int64_t padded_dim = PaddedDim(columns.head_dim);
  const bool is_widened = padded_dim != columns.head_dim;
  auto* out = reinterpret_cast<float*>(packed);
  for (int64_t c = 0; c < columns.total(); ++c, out += padded_dim) {
    const float* row = columns.Row(c);
    std::fill(out + columns.head_dim, out + padded_dim, 0.0f);
    for (int64_t d = 0; d < columns.head_dim; ++d) {
      out[is_widened ? d : IndexInPairs<kType>(d)] = row[d];
    }
  }
}

int64_t PackedQueryBytes(int64_t head_dim) {
  return RoundUp(kMaxColumns * PaddedDim(head_dim) * static_cast<int64_t>(sizeof(float)), 64);
}

int64_t ScratchBytes(int64_t) { return RoundUp(Scratch::kBytes, 64); }

template <DType kType>
constexpr AttentionKernel kKernel = {kMaxHeads,    kTileColumns,       PackedQueryBytes,
                                     ScratchBytes, PackQueries<kType>, AttendChunk<kType>};

const AttentionKernel& Kernel(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return kKernel<DType::kBF16>;
    case DType::kF16:
      return kKernel<DType::kF16>;
    default:
      return kKernel<DType::kF32>;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

const AttentionKernel& VectorAttentionKernel(Isa isa, DType dtype) {
  return KVICK_FOR_ISA(isa, Kernel)(dtype);
}

}  // namespace kvick
#endif
