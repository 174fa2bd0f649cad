#ifndef KVICK_CACHE_KV_CACHE_STATE_H_
#define KVICK_CACHE_KV_CACHE_STATE_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "cache/kv_storage.h"
#include "cache/prefix_index.h"
#include "kvick/kv_cache.h"

namespace kvick {

// The parts that KvCache is the face of, and the steps that touch more than one of them.
struct KvCache::State {
  State(const KvConfig& config, KvStorage storage);

  // The table of a sequence, or why not.
  Result<const BlockTable*> Find(SequenceId sequence) const;
  // The same for a change: an open plan is in the way.
  Result<BlockTable*> FindForChange(SequenceId sequence);

  // Cuts the last entry off a table. REQUIRES: the table's token counts no longer reach into it.
  void PopBlock(BlockTable& table);
  // One more reference for a sequence, or one less. The last but one makes what the index knows
  // evictable; what no holder has filled is emptied.
  void Hold(BlockId block);
  void Release(BlockId block);
  // The one place that keeps KvFill::kNan true: empties the slots that no holder has a token in.
  void ClearUnfilledSlots(BlockId block);
  // Appends the blocks that num_tokens more tokens need, and makes a shared last block the
  // sequence's own if some fall into it. Evicts for it. Errors: exhausted, nothing has changed.
  Status Grow(BlockTable& table, int64_t num_tokens);
  // Undoes Reserve: pending blocks go back, a replaced block returns to its place. What was evicted
  // is gone.
  void Abandon(BlockTable& table);

  int64_t num_available() const { return pool.num_free() + index.num_idle(); }
  // REQUIRES: as many are available.
  void EvictUntilFree(int64_t num_blocks);
  // CachePrefix and FinishAndCache differ in the last block, where it is part-filled.
  enum class Tail { kLeave, kPublish };
  Status CachePrefix(BlockTable& table, const PrefixScope& scope, std::span<const int32_t> tokens,
                     Tail tail);
  // Puts an equal block in the place of entry i of a table and of all that share it: who holds a
  // block of the index must hold the path to it.
  void ReplaceEverywhere(BlockTable& table, size_t i, BlockId equal);

  Status VerifyTables() const;
  Status VerifyPool() const;
  Status VerifyPrefixes() const;

  KvConfig config;
  KvStorage storage;
  BlockPool pool;
  SequenceTable sequences;
  // Holds one reference of each block in it.
  PrefixIndex index;
  // [num_blocks]: room for Usage, which allocates nothing.
  mutable std::vector<int64_t> filled_slots;
};

}  // namespace kvick

#endif  // KVICK_CACHE_KV_CACHE_STATE_H_
