// The attention kernel over vectors: compiled once for each vector implementation.
//
// Order of operations, for each column on its own:
//   score[s] = scale * tree(lanes of sum_d q[d] k[s][d]), d ascending in steps of the vector, FMA
//   max      = over the visible s: exact in any order
//   p[s]     = exp(score[s] - max);  sum = tree(lanes of sum_s p[s]), s ascending in vector steps
//   out[d]   = sum_s p[s] v[s][d], s ascending, FMA
// Several columns share a load of k or v; that changes no operation of any of them.

#include <algorithm>
#include <cstring>
#include <limits>

#include "attention/attention_kernel.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention_vector.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h: these are compiled once per target too.
#include "base/simd_load-inl.h"
#include "base/sum_lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace {

// Columns that share a load, and with 4 slots (keys) or 4 vectors (values) 16 accumulators: two FMA
// ports with a latency of 4 need 8. AVX2 has 16 registers in all: there a tile is half as deep.
constexpr int64_t kTileColumns = 4;
constexpr int64_t kTileDepth = HWY_CAP_GE512 ? 4 : 2;

// Positions whose rows are widened together, where a row is not a whole number of vectors.
constexpr int64_t kWidenedRows = 32;

int64_t NumLanes() { return static_cast<int64_t>(hn::Lanes(F32Tag())); }
int64_t PaddedDim(int64_t head_dim) { return RoundUp(head_dim, NumLanes()); }

// What lies where in a thread's scratch, all f32.
struct Scratch {
  float* scores;   // [kTileColumns, kChunkTokens]
  float* out;      // [kTileColumns, kMaxHeadDim]
  float* widened;  // [kWidenedRows, kMaxHeadDim]

  static constexpr int64_t kBytes =
      (kTileColumns * (kChunkTokens + kMaxHeadDim) + kWidenedRows * kMaxHeadDim) *
      static_cast<int64_t>(sizeof(float));

  explicit Scratch(std::byte* memory)
      : scores(reinterpret_cast<float*>(memory)),
        out(scores + kTileColumns * kChunkTokens),
        widened(out + kTileColumns * kMaxHeadDim) {}
};

// Consecutive rows of keys or values, `stride` bytes apart.
struct Rows {
  const std::byte* data;
  int64_t stride;
  int64_t begin;  // position, counted from the chunk's
  int64_t num;
};

enum class Part { kKeys, kValues };

// Calls body(Rows) for the stretches of [0, num_slots) of the chunk that lie in one block each.
template <Part kPart, class Body>
void ForEachRun(const ChunkTask& task, int64_t num_slots, Body&& body) {
  for (int64_t s = 0; s < num_slots;) {
    const int64_t position = task.begin + s;
    const int64_t num = std::min(task.kv->RunLength(position), num_slots - s);
    const std::byte* data = kPart == Part::kKeys
                                ? task.kv->Key(task.layer, task.kv_head, position)
                                : task.kv->Value(task.layer, task.kv_head, position);
    body(Rows{data, task.kv->layout.slot_stride, s, num});
    s += num;
  }
}

// The same rows as f32 with zeros up to a whole vector: exact, so no bit of a result changes.
template <class Body>
void ForEachWidened(const Rows& rows, const KvLayout& layout, float* widened, Body&& body) {
  const int64_t padded = PaddedDim(layout.head_dim);
  for (int64_t i = 0; i < rows.num; i += kWidenedRows) {
    const int64_t num = std::min(kWidenedRows, rows.num - i);
    for (int64_t r = 0; r < num; ++r) {
      float* row = widened + r * padded;
      ConvertToF32(layout.dtype, rows.data + (i + r) * rows.stride, layout.head_dim, row);
      std::fill(row + layout.head_dim, row + padded, 0.0f);
    }
    body(Rows{reinterpret_cast<const std::byte*>(widened),
              padded * static_cast<int64_t>(sizeof(float)), rows.begin + i, num});
  }
}

// scores[c][s] for kColumns columns and kSlots rows.
template <DType kType, int64_t kColumns, int64_t kSlots>
HWY_INLINE void ScoreTile(const float* queries, const std::byte* keys, int64_t key_stride,
                          int64_t padded_dim, float* scores) {
  const F32Tag d;
  F32Vector sums[kColumns][kSlots];
  for (auto& column : sums) {
    for (auto& sum : column) sum = hn::Zero(d);
  }
  const int64_t element_bytes = kType == DType::kF32 ? 4 : 2;
  for (int64_t i = 0; i < padded_dim; i += NumLanes()) {
    F32Vector q[kColumns];
    for (int64_t c = 0; c < kColumns; ++c) q[c] = hn::Load(d, queries + c * padded_dim + i);
    for (int64_t s = 0; s < kSlots; ++s) {
      const F32Vector k = LoadF32<kType>(d, keys + s * key_stride + i * element_bytes);
      for (int64_t c = 0; c < kColumns; ++c) sums[c][s] = hn::MulAdd(q[c], k, sums[c][s]);
    }
  }
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t s = 0; s < kSlots; ++s) {
      scores[c * kChunkTokens + s] = SumLanes(d, sums[c][s]);
    }
  }
}

template <DType kType, int64_t kColumns>
void ScoreRows(const float* queries, const Rows& rows, int64_t padded_dim, float* scores) {
  int64_t s = 0;
  for (; s + kTileDepth <= rows.num; s += kTileDepth) {
    ScoreTile<kType, kColumns, kTileDepth>(queries, rows.data + s * rows.stride, rows.stride,
                                           padded_dim, scores + rows.begin + s);
  }
  for (; s < rows.num; ++s) {
    ScoreTile<kType, kColumns, 1>(queries, rows.data + s * rows.stride, rows.stride, padded_dim,
                                  scores + rows.begin + s);
  }
}

// scores[s] becomes exp(scale * score - max) for s in [0, num), num > 0. A NaN stays one: Highway's
// Exp would make it 0 and hide a read of an empty slot.
HWY_INLINE void Softmax(float* scores, int64_t num, float scale, float* max_out, float* sum_out) {
  const F32Tag d;
  const F32Vector minus_infinity = hn::Set(d, -std::numeric_limits<float>::infinity());
  F32Vector max = minus_infinity;
  for (int64_t s = 0; s < num; s += NumLanes()) {
    const auto visible = hn::FirstN(d, static_cast<size_t>(num - s));
    const F32Vector score = hn::Mul(hn::Load(d, scores + s), hn::Set(d, scale));
    hn::Store(score, d, scores + s);
    max = hn::Max(max, hn::IfThenElse(visible, score, minus_infinity));
  }
  const F32Vector max_of_lanes = hn::MaxOfLanes(d, max);
  F32Vector sum = hn::Zero(d);
  for (int64_t s = 0; s < num; s += NumLanes()) {
    const auto visible = hn::FirstN(d, static_cast<size_t>(num - s));
    const F32Vector x = hn::Sub(hn::Load(d, scores + s), max_of_lanes);
    const F32Vector e = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
    const F32Vector p = hn::IfThenElseZero(visible, e);
    hn::Store(p, d, scores + s);
    sum = hn::Add(sum, p);
  }
  *max_out = hn::GetLane(max_of_lanes);
  *sum_out = SumLanes(d, sum);
}

// out[c][i .. i + kVectors lanes) += sum_s p[c][s] v[s][...] over the rows.
template <DType kType, int64_t kColumns, int64_t kVectors>
HWY_INLINE void ValueTile(const float* p, const Rows& rows, int64_t i, float* out) {
  const F32Tag d;
  const int64_t element_bytes = kType == DType::kF32 ? 4 : 2;
  F32Vector sums[kColumns][kVectors];
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kVectors; ++n) {
      sums[c][n] = hn::Load(d, out + c * kMaxHeadDim + i + n * NumLanes());
    }
  }
  for (int64_t s = 0; s < rows.num; ++s) {
    const std::byte* row = rows.data + s * rows.stride + i * element_bytes;
    F32Vector v[kVectors];
    for (int64_t n = 0; n < kVectors; ++n) {
      v[n] = LoadF32<kType>(d, row + n * NumLanes() * element_bytes);
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      const F32Vector weight = hn::Set(d, p[c * kChunkTokens + s]);
      for (int64_t n = 0; n < kVectors; ++n) sums[c][n] = hn::MulAdd(weight, v[n], sums[c][n]);
    }
  }
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t n = 0; n < kVectors; ++n) {
      hn::Store(sums[c][n], d, out + c * kMaxHeadDim + i + n * NumLanes());
    }
  }
}

template <DType kType, int64_t kColumns>
void ValueRows(const float* p, const Rows& rows, int64_t padded_dim, float* out) {
  int64_t i = 0;
  for (; i + kTileDepth * NumLanes() <= padded_dim; i += kTileDepth * NumLanes()) {
    ValueTile<kType, kColumns, kTileDepth>(p + rows.begin, rows, i, out);
  }
  for (; i < padded_dim; i += NumLanes()) {
    ValueTile<kType, kColumns, 1>(p + rows.begin, rows, i, out);
  }
}

// One to kTileColumns columns of the chunk, from queries to partial results.
template <DType kType, int64_t kColumns>
void AttendTile(const ChunkTask& task, int64_t first_column, const PartialResult& result) {
  const KvLayout& layout = task.kv->layout;
  const int64_t padded_dim = PaddedDim(layout.head_dim);
  const bool is_whole_vectors = padded_dim == layout.head_dim;
  const Scratch scratch(task.scratch);
  const float* queries =
      reinterpret_cast<const float*>(task.packed_queries) + first_column * padded_dim;

  int64_t num_seen[kColumns];  // ascending: later tokens see more
  for (int64_t c = 0; c < kColumns; ++c) num_seen[c] = task.VisibleHere(first_column + c);
  const int64_t seen_by_all = num_seen[0], seen_by_any = num_seen[kColumns - 1];

  ForEachRun<Part::kKeys>(task, seen_by_any, [&](const Rows& rows) {
    if (is_whole_vectors) {
      ScoreRows<kType, kColumns>(queries, rows, padded_dim, scratch.scores);
    } else {
      ForEachWidened(rows, layout, scratch.widened, [&](const Rows& widened) {
        ScoreRows<DType::kF32, kColumns>(queries, widened, padded_dim, scratch.scores);
      });
    }
  });
  for (int64_t c = 0; c < kColumns; ++c) {
    if (num_seen[c] == 0) continue;
    Softmax(scratch.scores + c * kChunkTokens, num_seen[c], task.scale,
            result.max + first_column + c, result.sum + first_column + c);
  }
  std::fill_n(scratch.out, kColumns * kMaxHeadDim, 0.0f);
  const auto add_values = [&]<DType kRowType>(const Rows& rows) {
    const int64_t num_common = std::clamp<int64_t>(seen_by_all - rows.begin, 0, rows.num);
    if (num_common > 0) {
      ValueRows<kRowType, kColumns>(scratch.scores,
                                    {rows.data, rows.stride, rows.begin, num_common}, padded_dim,
                                    scratch.out);
    }
    for (int64_t c = 0; c < kColumns; ++c) {  // the positions that only later tokens see
      const int64_t num = std::clamp<int64_t>(num_seen[c] - rows.begin, 0, rows.num) - num_common;
      if (num <= 0) continue;
      const Rows rest{rows.data + num_common * rows.stride, rows.stride, rows.begin + num_common,
                      num};
      ValueRows<kRowType, 1>(scratch.scores + c * kChunkTokens, rest, padded_dim,
                             scratch.out + c * kMaxHeadDim);
    }
  };
  ForEachRun<Part::kValues>(task, seen_by_any, [&](const Rows& rows) {
    if (is_whole_vectors) {
      add_values.template operator()<kType>(rows);
    } else {
      ForEachWidened(rows, layout, scratch.widened, [&](const Rows& widened) {
        add_values.template operator()<DType::kF32>(widened);
      });
    }
  });
  for (int64_t c = 0; c < kColumns; ++c) {
    if (num_seen[c] == 0) continue;
    std::copy_n(scratch.out + c * kMaxHeadDim, layout.head_dim,
                result.out + (first_column + c) * layout.head_dim);
  }
}

template <DType kType>
void AttendChunk(const ChunkTask& task, const PartialResult& result) {
  int64_t c = 0;
  for (; c + kTileColumns <= task.num_columns; c += kTileColumns) {
    AttendTile<kType, kTileColumns>(task, c, result);
  }
  switch (task.num_columns - c) {
    case 3:
      return AttendTile<kType, 3>(task, c, result);
    case 2:
      return AttendTile<kType, 2>(task, c, result);
    case 1:
      return AttendTile<kType, 1>(task, c, result);
    default:
      return;
  }
}

// [num][padded_dim] f32, zeros behind head_dim.
void PackQueries(const QueryColumns& columns, std::byte* packed) {
  const int64_t padded_dim = PaddedDim(columns.head_dim);
  auto* out = reinterpret_cast<float*>(packed);
  for (int64_t c = 0; c < columns.num; ++c, out += padded_dim) {
    std::copy_n(columns.Row(c), columns.head_dim, out);
    std::fill(out + columns.head_dim, out + padded_dim, 0.0f);
  }
}

int64_t PackedQueryBytes(int64_t head_dim) {
  return RoundUp(kMaxColumns * PaddedDim(head_dim) * static_cast<int64_t>(sizeof(float)), 64);
}

int64_t ScratchBytes(int64_t) { return RoundUp(Scratch::kBytes, 64); }

template <DType kType>
constexpr AttentionKernel kKernel = {PackedQueryBytes, ScratchBytes, PackQueries,
                                     AttendChunk<kType>};

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
