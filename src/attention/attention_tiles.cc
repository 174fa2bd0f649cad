// The attention kernel over matrix tiles, for keys and values in bf16.
//
// Order of operations, for each column on its own:
//   score[s] = scale * sum over d of q[d] k[s][d], in tile steps of 32 d (even and odd d apart);
//              with a soft cap cap * tanh(scale / cap * sum)
//   max      = over the visible s: exact in any order
//   p[s]     = exp(score[s] - max);  sum = tree(16 lanes of sum_s p[s]), s ascending in steps of 16
//   out[d]   = sum over s of bf16(p[s]) v[s][d], in tile steps of 32 s (even and odd s apart)
// A query is the sum of two bf16, because a score is the argument of an exponential, and one bf16
// is off by up to 2^-8 of sum_d |q k|. Each step takes the leading one first; a key is loaded once
// for both.
//
// In both products a column is one row or one column of the result, which does not depend on the
// other ones. A position that a column does not see has p = 0; if no column sees it, its value is
// not read.

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>
#include <utility>

#include "attention/attention_kernel.h"
#include "attention/chunk_rows.h"
#include "base/amx_tiles.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"

// One vector target: every processor with tiles has AVX-512, and the emulation requires it too.
#define HWY_BASELINE_TARGETS HWY_AVX3
#define HWY_COMPILE_ONLY_STATIC
#include "attention/prefetch-inl.h"
#include "attention/softmax-inl.h"
#include "base/simd_store-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;
constexpr int64_t kGroup = kTileRows;     // columns that one tile holds
constexpr int64_t kSlotTile = kTileRows;  // keys that one tile holds
constexpr int64_t kDimStep = 32;  // bf16 in a tile row: head_dim a key tile, slots a value step
constexpr int64_t kSlotStep = 32;
constexpr int64_t kMaxDimTiles = kMaxHeadDim / kLanes;

using BF16 = uint16_t;

// The layout of a thread's scratch memory.
struct Scratch {
  alignas(64) BF16 values[kChunkTokens / kSlotStep][kMaxDimTiles][kSlotStep / 2][kLanes * 2];
  alignas(64) float scores[kGroup][kChunkTokens];
  alignas(64) BF16 weights[kGroup][kChunkTokens];
  alignas(64) BF16 keys[kSlotTile][kMaxHeadDim];  // where 16 slots are not adjacent
  alignas(64) float score_tile[kSlotTile][kGroup];
  alignas(64) float out_tile[kGroup][kLanes];
};

// One group of up to 16 columns of a chunk.
struct Group {
  int64_t first;  // column
  int64_t num;
  SlotRange seen_by_any;
  bool is_first;  // of those that see something: it reads from memory, the others from L2
};

// Packed queries: [group][part][d / 2][16 columns][2], the layout of the B operand.
constexpr int kQueryParts = 2;
int64_t PartElements(int64_t head_dim) { return head_dim * kGroup; }
int64_t GroupElements(int64_t head_dim) { return kQueryParts * PartElements(head_dim); }

void PackQueries(const QueryColumns& columns, std::byte* packed) {
  const int64_t head_dim = columns.head_dim;
  auto* out = reinterpret_cast<BF16*>(packed);
  for (int64_t c = 0; c < columns.total(); ++c) {
    const float* row = columns.Row(c);
    BF16* column = out + c / kGroup * GroupElements(head_dim) + c % kGroup * 2;
    for (int64_t d = 0; d < head_dim; ++d) {
      const int64_t i = d / 2 * kGroup * 2 + d % 2;
      column[i] = F32ToBF16(row[d]);
      column[PartElements(head_dim) + i] = F32ToBF16(row[d] - BF16ToF32(column[i]));
    }
  }
}

int64_t PackedQueryBytes(int64_t head_dim) {
  return kMaxColumns / kGroup * GroupElements(head_dim) * static_cast<int64_t>(sizeof(BF16));
}

int64_t ScratchBytes(int64_t) { return sizeof(Scratch); }

const BF16* AsBF16(const std::byte* data) { return reinterpret_cast<const BF16*>(data); }

// Sixteen consecutive keys: in place if one block holds them all, else a copy. Those of slots
// before `first_slot` are not read, but zeros.
struct KeyRows {
  const std::byte* data;
  int64_t stride;  // bytes
};

KeyRows SixteenKeys(const ChunkTask& task, int64_t slot, int64_t first_slot, Scratch& scratch) {
  const KvView& kv = *task.kv;
  const int64_t position = task.begin + slot;
  if (slot >= first_slot && kv.RunLength(position) >= kSlotTile) {
    return {RowAt<Side::kKeys>(task, 0, position), kv.layout.slot_stride};
  }
  const int64_t num = std::min(kSlotTile, task.end - position);
  const auto row_bytes = static_cast<size_t>(kv.layout.head_dim) * sizeof(BF16);
  for (int64_t s = 0; s < kSlotTile; ++s) {
    if (slot + s >= first_slot && s < num) {
      std::memcpy(scratch.keys[s], RowAt<Side::kKeys>(task, 0, position + s), row_bytes);
    } else {
      std::memset(scratch.keys[s], 0, row_bytes);
    }
  }
  return {reinterpret_cast<const std::byte*>(scratch.keys), sizeof(scratch.keys[0])};
}

// Prefetches what is read after slots [slot, slot + num), where `slots` are read in all.
template <Side kSide>
void PrefetchRows(const ChunkTask& task, int64_t slot, int64_t num, const SlotRange& slots) {
  KVICK_CHECK(slot >= slots.begin && slot < slots.end);
  const KvLayout& layout = task.kv->layout;
  const AheadRows ahead = RowsAhead<kSide>(task, 0, slot, slots);
  for (int64_t i = 0; i < num; ++i) {
    Prefetch(ahead, i * layout.slot_stride, layout.head_dim * int64_t{sizeof(BF16)});
  }
}

// Two rows of values in the layout of the B operand: [16 of D][2], a row of a tile. Null: zeros.
void InterleaveRows(const BF16* even, const BF16* odd, BF16* out) {
  const hn::Rebind<uint16_t, F32Tag> d16;
  const hn::RebindToUnsigned<F32Tag> d32;
  const auto load = [&](const BF16* row) {
    return row == nullptr ? hn::Zero(d32) : hn::PromoteTo(d32, hn::LoadU(d16, row));
  };
  hn::Store(hn::Or(load(even), hn::ShiftLeft<16>(load(odd))), d32,
            reinterpret_cast<uint32_t*>(out));
}

// The elements after the last whole 16 of a row; zeros after head_dim.
void InterleaveTails(const BF16* even, const BF16* odd, int64_t num, BF16* out) {
  alignas(32) BF16 tails[2][kLanes] = {};
  if (even != nullptr) std::copy_n(even, num, tails[0]);
  if (odd != nullptr) std::copy_n(odd, num, tails[1]);
  InterleaveRows(tails[0], tails[1], out);
}

// The chunk's values in pairs of slots: [slot / 2][16 of D][2] of each tile. Those that are not in
// `slots`, and elements after head_dim, are zero.
void PackValues(const ChunkTask& task, const SlotRange& slots, Scratch& scratch) {
  const int64_t head_dim = task.kv->layout.head_dim;
  const int64_t num_whole = head_dim / kLanes, num_left = head_dim % kLanes;
  const auto row_at = [&](int64_t s) -> const BF16* {
    const bool is_read = s >= slots.begin && s < slots.end;
    return is_read ? AsBF16(RowAt<Side::kValues>(task, 0, task.begin + s)) : nullptr;
  };
  for (int64_t s = RoundDown(slots.begin, kSlotStep); s < RoundUp(slots.end, kSlotStep); s += 2) {
    const BF16 *even = row_at(s), *odd = row_at(s + 1);
    const SlotRange read = slots.Within({s, s + 2});
    if (!read.empty()) {
      PrefetchRows<Side::kValues>(task, read.begin, read.end - read.begin, slots);
    }
    const auto out = [&](int64_t tile) {
      return scratch.values[s / kSlotStep][tile][s % kSlotStep / 2];
    };
    for (int64_t tile = 0; tile < num_whole; ++tile) {
      const int64_t d = tile * kLanes;
      InterleaveRows(even == nullptr ? nullptr : even + d, odd == nullptr ? nullptr : odd + d,
                     out(tile));
    }
    if (num_left > 0) {
      const int64_t d = num_whole * kLanes;
      InterleaveTails(even == nullptr ? nullptr : even + d, odd == nullptr ? nullptr : odd + d,
                      num_left, out(num_whole));
    }
  }
}

// score_tile[s][c] of 16 slots. Tiles: 0 scores; 1, 2 keys and queries of a whole step over
// head_dim; 3, 4 those of the last, shorter step.
template <class Tiles>
void ScoreSlots(const KeyRows& keys, const BF16* queries, int64_t head_dim, Scratch& scratch) {
  constexpr int64_t kQueryStride = kGroup * 2 * sizeof(BF16);
  const BF16* low_queries = queries + PartElements(head_dim);
  Tiles::template Zero<0>();
  int64_t d = 0;
  for (; d + kDimStep <= head_dim; d += kDimStep) {
    Tiles::template Load<1>(keys.data + d * sizeof(BF16), keys.stride);
    Tiles::template Load<2>(queries + d * kGroup, kQueryStride);
    Tiles::template DotBF16<0, 1, 2>();
    Tiles::template Load<2>(low_queries + d * kGroup, kQueryStride);
    Tiles::template DotBF16<0, 1, 2>();
  }
  if (d < head_dim) {
    Tiles::template Load<3>(keys.data + d * sizeof(BF16), keys.stride);
    Tiles::template Load<4>(queries + d * kGroup, kQueryStride);
    Tiles::template DotBF16<0, 3, 4>();
    Tiles::template Load<4>(low_queries + d * kGroup, kQueryStride);
    Tiles::template DotBF16<0, 3, 4>();
  }
  Tiles::template Store<0>(scratch.score_tile, sizeof(scratch.score_tile[0]));
}

template <class Tiles>
void ScoreGroup(const ChunkTask& task, const Group& group, Scratch& scratch) {
  const int64_t head_dim = task.kv->layout.head_dim;
  const auto tail = static_cast<int>(head_dim % kDimStep);
  TileConfig config;
  config.SetShape(0, kSlotTile, kGroup * sizeof(float));
  config.SetShape(1, kSlotTile, kDimStep * sizeof(BF16));
  config.SetShape(2, kDimStep / 2, kGroup * 2 * sizeof(BF16));
  if (tail > 0) {
    config.SetShape(3, kSlotTile, tail * static_cast<int>(sizeof(BF16)));
    config.SetShape(4, tail / 2, kGroup * 2 * sizeof(BF16));
  }
  Tiles::Configure(config);
  const BF16* queries =
      AsBF16(task.packed_queries) + group.first / kGroup * GroupElements(head_dim);
  const auto column = hn::Mul(hn::Iota(hn::RebindToSigned<F32Tag>(), 0),
                              hn::Set(hn::RebindToSigned<F32Tag>(), int32_t{kGroup}));
  const SlotRange slots = group.seen_by_any;
  for (int64_t s = RoundDown(slots.begin, kSlotTile); s < slots.end; s += kSlotTile) {
    if (group.is_first) {
      PrefetchRows<Side::kKeys>(task, std::max(s, slots.begin), kSlotTile, slots);
    }
    ScoreSlots<Tiles>(SixteenKeys(task, s, slots.begin, scratch), queries, head_dim, scratch);
    for (int64_t c = 0; c < group.num; ++c) {
      hn::Store(hn::GatherIndex(kTag, &scratch.score_tile[0][c], column), kTag,
                &scratch.scores[c][s]);
    }
  }
}

// out[c][d] = sum_s weights[c][s] values[s][d], 16 of D at a time. Tiles: 0 out, 1 weights, 2
// values.
template <class Tiles>
void AddValues(const ChunkTask& task, const Group& group, const PartialResult& result,
               Scratch& scratch) {
  const int64_t head_dim = task.kv->layout.head_dim;
  TileConfig config;
  config.SetShape(0, static_cast<int>(group.num), kLanes * sizeof(float));
  config.SetShape(1, static_cast<int>(group.num), kSlotStep * sizeof(BF16));
  config.SetShape(2, kSlotStep / 2, kLanes * 2 * sizeof(BF16));
  Tiles::Configure(config);
  const SlotRange slots = group.seen_by_any;
  for (int64_t tile = 0; tile < CeilDiv(head_dim, kLanes); ++tile) {
    Tiles::template Zero<0>();
    for (int64_t s = RoundDown(slots.begin, kSlotStep); s < slots.end; s += kSlotStep) {
      Tiles::template Load<1>(&scratch.weights[0][s], sizeof(scratch.weights[0]));
      Tiles::template Load<2>(scratch.values[s / kSlotStep][tile], kLanes * 2 * sizeof(BF16));
      Tiles::template DotBF16<0, 1, 2>();
    }
    Tiles::template Store<0>(scratch.out_tile, sizeof(scratch.out_tile[0]));
    const int64_t num = std::min(kLanes, head_dim - tile * kLanes);
    for (int64_t c = 0; c < group.num; ++c) {
      if (task.VisibleHere(group.first + c).empty()) continue;
      float* out = result.out + (group.first + c) * head_dim + tile * kLanes;
      // A tile step in which a column sees nothing adds +0: that turns a -0 into +0. Adding it here
      // makes the sign of zero the same however many such steps there were.
      for (int64_t i = 0; i < num; ++i) out[i] = scratch.out_tile[c][i] + 0.0f;
    }
  }
}

template <class Tiles>
void AttendChunk(const ChunkTask& task, const PartialResult& result) {
  Scratch& scratch = *reinterpret_cast<Scratch*>(task.scratch);
  bool is_first = true;
  for (int64_t first = 0; first < task.num_columns; first += kGroup) {
    Group group;
    group.first = first;
    group.num = std::min(kGroup, task.num_columns - first);
    group.seen_by_any = task.VisibleToAny(first, group.num);
    if (group.seen_by_any.empty()) continue;
    group.is_first = std::exchange(is_first, false);
    ScoreGroup<Tiles>(task, group, scratch);
    for (int64_t c = 0; c < group.num; ++c) {
      const SoftmaxRange range{task.VisibleHere(first + c),
                               {RoundDown(group.seen_by_any.begin, kSlotStep),
                                RoundUp(group.seen_by_any.end, kSlotStep)}};
      const SoftmaxResult softmax =
          Softmax(scratch.scores[c], range, task.scale,
                  [&](F32Vector p, int64_t s) { StoreBF16(p, scratch.weights[c] + s); });
      result.max[first + c] = softmax.max;
      result.sum[first + c] = softmax.sum;
    }
    // Values of all groups, packed once: after the first group's keys, so that memory is read in
    // the order in which it is prefetched.
    if (group.is_first) {
      PackValues(task, task.VisibleToAny(0, task.num_columns), scratch);
    }
    AddValues<Tiles>(task, group, result, scratch);
  }
  Tiles::Release();
}

template <class Tiles>
constexpr AttentionKernel kKernel = {1,           kMaxColumns,       PackedQueryBytes, ScratchBytes,
                                     PackQueries, AttendChunk<Tiles>};

}  // namespace
}  // namespace HWY_NAMESPACE

const AttentionKernel& TileAttentionKernel() { return HWY_NAMESPACE::kKernel<HardwareTiles>; }
const AttentionKernel& EmulatedTileAttentionKernel() {
  return HWY_NAMESPACE::kKernel<EmulatedTiles>;
}

}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // defined(__x86_64__)
