#ifndef KVICK_ATTENTION_ATTENTION_KERNEL_H_
#define KVICK_ATTENTION_ATTENTION_KERNEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/isa.h"
#include "kvick/kv_layout.h"

namespace kvick {

// Keys are read in chunks, counted from position 0. The partial result of a chunk is the same on
// any thread, and partial results are merged in ascending order. 512 positions of a head of 128 in
// bf16 are 128 KiB of keys and as much of values: they stay in the L2 cache while one group of
// columns after the other reads them.
inline constexpr int64_t kChunkTokens = 512;

// A column is one query head of one new token. The columns of a KV head are ordered by token, then
// by query head. A kernel call takes up to this many: enough that prefill reads a chunk from memory
// once for 128 columns, few enough that their accumulators (64 KiB at D = 128) stay in L2.
inline constexpr int64_t kMaxColumns = 128;

inline constexpr int64_t kMaxHeadDim = 256;

// Columns [first, first + num) of one or more KV heads of one sequence, head by head.
// Column c of a KV head is its query head c % heads_per_group of token c / heads_per_group.
struct QueryColumns {
  const float* q = nullptr;  // [D] of the first token and the first query head
  int64_t token_stride = 0;  // floats from a token to the next; heads lie D apart
  int64_t heads_per_group = 1;
  int64_t head_dim = 0;
  int64_t num_kv_heads = 1;
  int64_t first = 0;
  int64_t num = 0;

  int64_t total() const { return num_kv_heads * num; }  // at most kMaxColumns

  const float* Row(int64_t i) const {
    const int64_t c = first + i % num;
    const int64_t head = i / num * heads_per_group + c % heads_per_group;
    return q + c / heads_per_group * token_stride + head * head_dim;
  }
};

// Slots [begin, end) of a chunk.
struct SlotRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
  // The least range that holds both; an empty one holds nothing.
  SlotRange Union(const SlotRange& other) const {
    if (empty() || other.empty()) return empty() ? other : *this;
    return {std::min(begin, other.begin), std::max(end, other.end)};
  }
  // What is common to both. Where nothing is, an empty range at the nearest slot of `other`.
  SlotRange Within(const SlotRange& other) const {
    const int64_t first = std::clamp(begin, other.begin, other.end);
    return {first, std::clamp(end, first, other.end)};
  }
};

// From dot products to scores: scale * x, or with a cap cap * tanh(scale / cap * x).
struct ScoreScale {
  float factor = 1.0f;    // scale, or scale / cap
  float soft_cap = 0.0f;  // 0: none
};

inline constexpr int64_t kNoWindow = std::numeric_limits<int64_t>::max();

// What one chunk contributes: out = sum_s exp(score_s - max) v_s, sum = sum_s exp(score_s - max).
// For a column that sees nothing of the chunk, the values are undefined.
//
// Shapes  max, sum [kMaxColumns];  out [kMaxColumns, D]
// Units   scores and max: natural logarithm, scale applied
struct PartialResult {
  float* max = nullptr;
  float* sum = nullptr;
  float* out = nullptr;
};

// One chunk of one or more KV heads. Columns are ordered by head.
struct ChunkTask {
  const KvView* kv = nullptr;
  int64_t layer = 0;
  int64_t first_kv_head = 0;
  int64_t num_kv_heads = 1;
  int64_t begin = 0;  // positions, a multiple of kChunkTokens
  int64_t end = 0;    // at most begin + kChunkTokens and kv->length
  const std::byte* packed_queries = nullptr;
  int64_t num_columns = 0;  // of each head
  // [num_columns], ascending, the same for each head: column c sees the last `window` positions of
  // [0, num_visible[c]).
  const int64_t* num_visible = nullptr;
  int64_t window = kNoWindow;
  ScoreScale scale;
  std::byte* scratch = nullptr;

  SlotRange VisibleHere(int64_t column) const {
    const int64_t last = num_visible[column];
    const int64_t first = std::max<int64_t>(0, last - window);
    return SlotRange{first - begin, last - begin}.Within({0, end - begin});
  }

  // What any of `num` columns sees: without gaps, because their tokens are consecutive.
  SlotRange VisibleToAny(int64_t first_column, int64_t num) const {
    SlotRange any;
    for (int64_t c = 0; c < num; ++c) any = any.Union(VisibleHere(first_column + c));
    return any;
  }
};

// One implementation. All sizes are bytes, multiples of 64; all buffers are 64-byte aligned.
//
// Contract: the partial result of a column depends on its query, its visible keys and values, and
// nothing else, if every value of the chunk is finite. (On tiles, the value of a position that a
// column does not see, but a neighbour does, is multiplied by a weight of exactly 0.)
struct AttentionKernel {
  int64_t max_kv_heads;                             // of one task
  int64_t max_columns;                              // of each head, where there are several
  int64_t (*packed_query_bytes)(int64_t head_dim);  // room for kMaxColumns
  int64_t (*scratch_bytes)(int64_t head_dim);
  void (*pack_queries)(const QueryColumns& columns, std::byte* packed);
  void (*attend_chunk)(const ChunkTask& task, const PartialResult& result);
};

// The kernel of an instruction set for a type of keys and values.
// REQUIRES: IsaAvailable(isa); dtype is bf16, f16 or f32.
const AttentionKernel& AttentionKernelFor(Isa isa, DType dtype);

// One file each: Highway vectors for any isa, matrix tiles for bf16.
const AttentionKernel& VectorAttentionKernel(Isa isa, DType dtype);
const AttentionKernel& TileAttentionKernel();
const AttentionKernel& EmulatedTileAttentionKernel();

}  // namespace kvick

#endif  // KVICK_ATTENTION_ATTENTION_KERNEL_H_
