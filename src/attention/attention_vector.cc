// The attention kernel over vectors: compiled once for each vector implementation.
//
// Order of operations, for each column on its own, the same on every target:
//   score[s] = scale * tree(16 lanes of sum_d q[d] k[s][d]), d ascending in pairs (32 elements);
//              with a soft cap cap * tanh(scale / cap * tree(...))
//   max      = over the visible s: exact in any order
//   p[s]     = exp(score[s] - max);  sum = tree(16 lanes of sum_s p[s]), s ascending in steps of 16
//   out[d]   = sum_s p[s] v[s][d], s ascending
// Products are added by FMA. A lane adds the first element of a pair, then the second: elements i
// and 16 + i, of bf16 2i + 1 and 2i (base/simd_load-inl.h). Rows are extended by zeros to whole
// pairs. Several columns share a load of k or v, and several slots the shuffles of their trees;
// that changes no operation of any of them.
//
// Targets with vectors of fewer than sixteen lanes sum one part of the lanes after the other, so
// that the sums of a tile stay in registers.

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

// Columns that share a load.
constexpr int64_t kTileColumns = 4;

// A tile of scores fills one vector, so that one transposing sum serves all of it.
template <int64_t kColumns>
constexpr int64_t kTileSlots = kLanes >= kColumns ? kLanes / kColumns : 1;

// Accumulators: two FMA ports with a latency of 4 need 8; 32 registers hold 16 and their operands.
constexpr int64_t kSums = HWY_CAP_GE512 ? 16 : 8;

// Parts of pairs of a row of values that are summed at once: two vectors each.
template <int64_t kColumns>
constexpr int64_t kTilePairParts = std::min<int64_t>(kSums / kColumns, 8) / 2;

int64_t PaddedDim(int64_t head_dim) { return RoundUp(head_dim, kPairElements); }

template <DType kType>
constexpr int64_t kPairBytes = kPairElements* kElementBytes<kType>;

// KV heads that are processed together: blocks of 16 tokens then give runs of 32 KiB (D = 128,
// bf16).
constexpr int64_t kMaxHeads = 8;

// From a column's scores to the next: not a multiple of 4 KiB, so that columns do not share sets of
// the L1 cache.
constexpr int64_t kScoreStride = kChunkTokens + 16;

// The layout of a thread's scratch memory, all f32.
struct Scratch {
  float* scores;      // [kMaxHeads, kTileColumns, kScoreStride]
  float* out;         // [kMaxHeads, kTileColumns, kMaxHeadDim], in the order of pairs
  std::byte* padded;  // [kRunSlots, kMaxHeadDim] of any type

  static constexpr int64_t kBytes =
      (kMaxHeads * kTileColumns * (kScoreStride + kMaxHeadDim) + kRunSlots * kMaxHeadDim) *
      static_cast<int64_t>(sizeof(float));

  explicit Scratch(std::byte* memory)
      : scores(reinterpret_cast<float*>(memory)),
        out(scores + kMaxHeads * kTileColumns * kScoreStride),
        padded(reinterpret_cast<std::byte*>(out + kMaxHeads * kTileColumns * kMaxHeadDim)) {}
};

// The same rows with zeros up to a whole pair.
template <DType kType>
Rows Pad(const Rows& rows, int64_t head_dim, std::byte* padded) {
  const int64_t stride = PaddedDim(head_dim) * kElementBytes<kType>;
  const auto row_bytes = static_cast<size_t>(head_dim * kElementBytes<kType>);
  for (int64_t r = 0; r < rows.num; ++r) {
    std::byte* row = padded + r * stride;
    std::memcpy(row, rows.data + r * rows.stride, row_bytes);
    std::memset(row + row_bytes, 0, static_cast<size_t>(stride) - row_bytes);
  }
  return {padded, stride, rows.begin, rows.num, {padded, padded}};
}

struct Queries {
  const float* data;   // [columns, padded_dim], in the order of pairs
  int64_t padded_dim;  // D, rounded up to whole pairs
};

// One part of the lanes of the sums of kColumns columns and kSlots rows: sums [kColumns, kSlots].
template <DType kType, int64_t kColumns, int64_t kSlots>
HWY_INLINE void SumPart(const Queries& queries, const Rows& rows, int64_t part, F32Vector* sums) {
  for (int64_t i = 0; i < kColumns * kSlots; ++i) sums[i] = hn::Zero(kTag);
  for (int64_t i = 0; i < queries.padded_dim; i += kPairElements) {
    F32Pair k[kSlots];
    for (int64_t s = 0; s < kSlots; ++s) {
      const int64_t offset = s * rows.stride + i * kElementBytes<kType>;
      k[s] = LoadF32Pair<kType>(kTag, rows.data + offset, part);
      PrefetchPart<kPairBytes<kType>>(rows.ahead, offset, part);
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      const float* q = queries.data + c * queries.padded_dim + i + part * kLanes;
      const F32Vector first = hn::Load(kTag, q), second = hn::Load(kTag, q + 16);
      for (int64_t s = 0; s < kSlots; ++s) {
        F32Vector& sum = sums[c * kSlots + s];
        sum = Fma(second, k[s].second, Fma(first, k[s].first, sum));
      }
    }
  }
}

// scores[c][s] for kColumns columns and kSlots rows, without the scale.
template <DType kType, int64_t kColumns, int64_t kSlots>
HWY_INLINE void ScoreTile(const Queries& queries, const Rows& rows, float* scores) {
  F32x16 lanes[kColumns * kSlots];
  F32Vector sums[kColumns * kSlots];
  for (int64_t part = 0; part < kParts; ++part) {
    SumPart<kType, kColumns, kSlots>(queries, rows, part, sums);
    for (int64_t i = 0; i < kColumns * kSlots; ++i) lanes[i].part[part] = sums[i];
  }
  for (int64_t i = 0; i < kColumns * kSlots; ++i) sums[i] = SumParts(lanes[i]);
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
void ScoreRows(const Queries& queries, const Rows& rows, float* scores) {
  constexpr int64_t kSlots = kTileSlots<kColumns>;
  int64_t s = 0;
  for (; s + kSlots <= rows.num; s += kSlots) {
    ScoreTile<kType, kColumns, kSlots>(queries, rows.Slice(s, kSlots), scores + rows.begin + s);
  }
  for (; s < rows.num; ++s) {
    ScoreTile<kType, kColumns, 1>(queries, rows.Slice(s, 1), scores + rows.begin + s);
  }
}

// The parts of the pairs of a row, numbered in ascending order.
struct PairPart {
  int64_t pair, part;

  explicit PairPart(int64_t i) : pair(i / kParts), part(i % kParts) {}
  int64_t FirstElement() const { return pair * kPairElements + part * kLanes; }
  int64_t SecondElement() const { return FirstElement() + 16; }
};

// out[c][...] += sum_s p[c][s] v[s][...] over the rows, for kNum parts of pairs from `begin` on.
template <DType kType, int64_t kColumns, int64_t kNum>
HWY_INLINE void ValueTile(const float* p, const Rows& rows, int64_t begin, float* out) {
  F32Pair sums[kColumns][kNum];
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kNum; ++n) {
      const PairPart at(begin + n);
      const float* column = out + c * kMaxHeadDim;
      sums[c][n] = {hn::Load(kTag, column + at.FirstElement()),
                    hn::Load(kTag, column + at.SecondElement())};
    }
  }
  for (int64_t s = 0; s < rows.num; ++s) {
    F32Pair v[kNum];
    for (int64_t n = 0; n < kNum; ++n) {
      const PairPart at(begin + n);
      const int64_t offset = s * rows.stride + at.pair * kPairBytes<kType>;
      v[n] = LoadF32Pair<kType>(kTag, rows.data + offset, at.part);
      if constexpr (kParts == 1) {
        PrefetchPart<kPairBytes<kType>>(rows.ahead, offset, at.part);
      } else {
        const int64_t ahead = (at.pair * rows.num + s) * kPairBytes<kType>;
        PrefetchPart<kPairBytes<kType>>(rows.ahead, ahead, at.part);
      }
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      const F32Vector weight = hn::Set(kTag, p[c * kScoreStride + s]);
      for (int64_t n = 0; n < kNum; ++n) {
        sums[c][n].first = Fma(weight, v[n].first, sums[c][n].first);
        sums[c][n].second = Fma(weight, v[n].second, sums[c][n].second);
      }
    }
  }
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kNum; ++n) {
      const PairPart at(begin + n);
      float* column = out + c * kMaxHeadDim;
      hn::Store(sums[c][n].first, kTag, column + at.FirstElement());
      hn::Store(sums[c][n].second, kTag, column + at.SecondElement());
    }
  }
}

template <DType kType, int64_t kColumns>
void ValueRows(const float* p, const Rows& rows, int64_t padded_dim, float* out) {
  constexpr int64_t kNum = kTilePairParts<kColumns>;
  const int64_t num_parts = padded_dim / kPairElements * kParts;
  int64_t i = 0;
  for (; i + kNum <= num_parts; i += kNum) {
    ValueTile<kType, kColumns, kNum>(p + rows.begin, rows, i, out);
  }
  for (; i < num_parts; ++i) {
    ValueTile<kType, kColumns, 1>(p + rows.begin, rows, i, out);
  }
}

// Copies elements from the order of pairs to their own order.
template <DType kType>
void FromPairs(const float* in, int64_t num, float* out) {
  if constexpr (!kPairIsOddEven<kType>) {
    std::copy_n(in, num, out);
  } else {
    int64_t i = 0;
    for (; i + kPairElements <= num; i += kPairElements) {
      for (int64_t lane = 0; lane < 16; ++lane) {
        out[i + 2 * lane] = in[i + 16 + lane];
        out[i + 2 * lane + 1] = in[i + lane];
      }
    }
    for (; i < num; ++i) out[i] = in[IndexInPairs<kType>(i)];
  }
}

// Some columns of each head of a chunk, from queries to partial results.
template <DType kType, int64_t kColumns>
class ColumnTile {
 public:
  ColumnTile(const ChunkTask& task, int64_t first_column, const PartialResult& result)
      : task_(task),
        first_column_(first_column),
        result_(result),
        scratch_(task.scratch),
        padded_dim_(PaddedDim(task.kv->layout.head_dim)) {
    for (int64_t c = 0; c < kColumns; ++c) {
      seen_[c] = task.VisibleHere(first_column + c);
      seen_by_any_ = seen_by_any_.Union(seen_[c]);
    }
  }

  void Attend() {
    ForEachRows<Side::kKeys>([&](int64_t head, const Rows& rows) {
      ScoreRows<kType, kColumns>(QueriesOf(head), rows, Scores(head));
    });
    for (int64_t head = 0; head < task_.num_kv_heads; ++head) TakeSoftmax(head);
    std::fill_n(scratch_.out, task_.num_kv_heads * kColumns * kMaxHeadDim, 0.0f);
    ForEachRows<Side::kValues>([&](int64_t head, const Rows& rows) { AddValues(head, rows); });
    for (int64_t head = 0; head < task_.num_kv_heads; ++head) WriteOut(head);
  }

 private:
  // Later tokens see no earlier slot than others, and no less far.
  SlotRange seen_by_all() const { return {seen_[kColumns - 1].begin, seen_[0].end}; }

  int64_t FirstColumn(int64_t head) const { return head * task_.num_columns + first_column_; }
  Queries QueriesOf(int64_t head) const {
    const auto* packed = reinterpret_cast<const float*>(task_.packed_queries);
    return {packed + FirstColumn(head) * padded_dim_, padded_dim_};
  }
  float* Scores(int64_t head) const { return scratch_.scores + head * kColumns * kScoreStride; }
  float* Out(int64_t head) const { return scratch_.out + head * kColumns * kMaxHeadDim; }

  // Calls body for the rows that any column sees. The first tile prefetches; the others find the
  // rows in the caches.
  template <Side kSide, class Body>
  void ForEachRows(Body&& body) {
    ForEachRun<kSide>(task_, seen_by_any_, [&](int64_t head, Rows rows) {
      if (first_column_ > 0) rows.ahead = {rows.data, rows.data};
      const int64_t head_dim = task_.kv->layout.head_dim;
      if (padded_dim_ != head_dim) rows = Pad<kType>(rows, head_dim, scratch_.padded);
      body(head, rows);
    });
  }

  void TakeSoftmax(int64_t head) {
    for (int64_t c = 0; c < kColumns; ++c) {
      if (seen_[c].empty()) continue;
      float* scores = Scores(head) + c * kScoreStride;
      const SlotRange slots{RoundDown(seen_[c].begin, 16), seen_[c].end};
      const SoftmaxResult softmax =
          Softmax(scores, {seen_[c], slots}, task_.scale,
                  [&](F32Vector p, int64_t s) { hn::Store(p, kTag, scores + s); });
      result_.max[FirstColumn(head) + c] = softmax.max;
      result_.sum[FirstColumn(head) + c] = softmax.sum;
    }
  }

  void AddValues(int64_t head, const Rows& rows) {
    const SlotRange run{rows.begin, rows.begin + rows.num};
    const SlotRange common = seen_by_all().Within(run);
    for (int64_t c = 0; c < kColumns; ++c) {  // what only earlier tokens see
      AddValuesOfColumn(head, c, rows, seen_[c].Within({run.begin, common.begin}));
    }
    if (!common.empty()) {
      ValueRows<kType, kColumns>(Scores(head), Slots(rows, common), padded_dim_, Out(head));
    }
    for (int64_t c = 0; c < kColumns; ++c) {  // what only later tokens see
      AddValuesOfColumn(head, c, rows, seen_[c].Within({common.end, run.end}));
    }
  }

  void AddValuesOfColumn(int64_t head, int64_t c, const Rows& rows, const SlotRange& slots) {
    if (slots.empty()) return;
    ValueRows<kType, 1>(Scores(head) + c * kScoreStride, Slots(rows, slots), padded_dim_,
                        Out(head) + c * kMaxHeadDim);
  }

  static Rows Slots(const Rows& rows, const SlotRange& slots) {
    return rows.Slice(slots.begin - rows.begin, slots.end - slots.begin);
  }

  void WriteOut(int64_t head) {
    const int64_t head_dim = task_.kv->layout.head_dim;
    for (int64_t c = 0; c < kColumns; ++c) {
      if (seen_[c].empty()) continue;
      float* out = result_.out + (FirstColumn(head) + c) * head_dim;
      FromPairs<kType>(Out(head) + c * kMaxHeadDim, head_dim, out);
    }
  }

  const ChunkTask& task_;
  int64_t first_column_;
  const PartialResult& result_;
  Scratch scratch_;
  int64_t padded_dim_;
  SlotRange seen_[kColumns];
  SlotRange seen_by_any_;
};

template <DType kType>
void AttendChunk(const ChunkTask& task, const PartialResult& result) {
  int64_t c = 0;
  for (; c + kTileColumns <= task.num_columns; c += kTileColumns) {
    ColumnTile<kType, kTileColumns>(task, c, result).Attend();
  }
  if (c + 2 <= task.num_columns) {
    ColumnTile<kType, 2>(task, c, result).Attend();
    c += 2;
  }
  if (c < task.num_columns) ColumnTile<kType, 1>(task, c, result).Attend();
}

// [num][padded_dim] f32 in the order of pairs, zeros for the elements after head_dim.
template <DType kType>
void PackQueries(const QueryColumns& columns, std::byte* packed) {
  const int64_t padded_dim = PaddedDim(columns.head_dim);
  auto* out = reinterpret_cast<float*>(packed);
  for (int64_t c = 0; c < columns.total(); ++c, out += padded_dim) {
    const float* row = columns.Row(c);
    for (int64_t d = 0; d < padded_dim; ++d) {
      out[IndexInPairs<kType>(d)] = d < columns.head_dim ? row[d] : 0.0f;
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
