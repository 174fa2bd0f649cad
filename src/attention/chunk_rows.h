#ifndef KVICK_ATTENTION_CHUNK_ROWS_H_
#define KVICK_ATTENTION_CHUNK_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/attention_kernel.h"

namespace kvick {

// Rows of keys or values that are read together: few enough that a second pass over them finds them
// in the L1 cache (4 KiB for a head of 128 in bf16).
inline constexpr int64_t kRunSlots = 16;

// How many runs ahead of its use a row is prefetched: far ahead into L2, then nearer into L1. A run
// is as long as a block of the usual size, so the next run is elsewhere in memory, where no
// hardware prefetcher can predict it.
inline constexpr int64_t kNearRuns = 1;
inline constexpr int64_t kFarRuns = 4;

enum class Side { kKeys, kValues };

// The rows that are read kNearRuns and kFarRuns later than others: addresses to prefetch, never to
// read.
struct AheadRows {
  const std::byte* near = nullptr;
  const std::byte* far = nullptr;
};

// Consecutive rows of keys or values, `stride` bytes apart.
struct Rows {
  const std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t begin = 0;  // slot of the chunk
  int64_t num = 0;
  AheadRows ahead;

  Rows Slice(int64_t first, int64_t count) const {
    const int64_t offset = first * stride;
    return {data + offset, stride, begin + first, count, {ahead.near + offset, ahead.far + offset}};
  }
};

template <Side kSide>
const std::byte* RowAt(const ChunkTask& task, int64_t head, int64_t position) {
  const int64_t kv_head = task.first_kv_head + head;
  return kSide == Side::kKeys ? task.kv->Key(task.layer, kv_head, position)
                              : task.kv->Value(task.layer, kv_head, position);
}

// A task reads its rows run by run, and each run head by head, because the heads of a block are
// adjacent. The keys of `slots` are followed by their values, and those by the keys of the next
// chunk. Returns the row that is read kRuns runs after that of (head, slot), as if all
// runs were of kRunSlots: exact for blocks of the usual size, close enough for others. If there is
// none, returns the row itself.
template <Side kSide, int64_t kRuns>
const std::byte* RowAhead(const ChunkTask& task, int64_t head, int64_t slot, SlotRange slots) {
  const int64_t next_head = (head + kRuns) % task.num_kv_heads;
  const int64_t next = slot + (head + kRuns) / task.num_kv_heads * kRunSlots;
  const int64_t past_end = next - slots.end;
  if (past_end < 0) return RowAt<kSide>(task, next_head, task.begin + next);
  if (kSide == Side::kKeys && slots.begin + past_end < slots.end) {
    return RowAt<Side::kValues>(task, next_head, task.begin + slots.begin + past_end);
  }
  const int64_t position = task.begin + kChunkTokens + past_end;
  if (kSide == Side::kValues && position < task.kv->length) {
    return RowAt<Side::kKeys>(task, next_head, position);
  }
  return RowAt<kSide>(task, head, task.begin + slot);
}

// REQUIRES: slots.begin <= slot < slots.end, because the block table is read. Callers check it: a
// check here would be inside the loop over runs.
template <Side kSide>
AheadRows RowsAhead(const ChunkTask& task, int64_t head, int64_t slot, SlotRange slots) {
  return {RowAhead<kSide, kNearRuns>(task, head, slot, slots),
          RowAhead<kSide, kFarRuns>(task, head, slot, slots)};
}

// Calls body(head, Rows) for `slots` of the chunk: for at most kRunSlots slots at a time, all of
// one block.
template <Side kSide, class Body>
void ForEachRun(const ChunkTask& task, SlotRange slots, Body&& body) {
  for (int64_t s = slots.begin; s < slots.end;) {
    const int64_t position = task.begin + s;
    const int64_t num = std::min({task.kv->RunLength(position), slots.end - s, kRunSlots});
    for (int64_t head = 0; head < task.num_kv_heads; ++head) {
      body(head, Rows{RowAt<kSide>(task, head, position), task.kv->layout.slot_stride, s, num,
                      RowsAhead<kSide>(task, head, s, slots)});
    }
    s += num;
  }
}

}  // namespace kvick

#endif  // KVICK_ATTENTION_CHUNK_ROWS_H_
