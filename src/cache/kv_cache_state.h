#ifndef KVICK_CACHE_KV_CACHE_STATE_H_
#define KVICK_CACHE_KV_CACHE_STATE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "cache/kv_storage.h"
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
  // Gives one reference back, and empties what no holder has filled.
  void Release(BlockId block);
  // The one place that keeps KvFill::kNan true: empties the slots that no holder has a token in.
  void ClearUnfilledSlots(BlockId block);
  // Undoes Reserve: pending blocks go back, a replaced block returns to its place.
  void Abandon(BlockTable& table);

  Status VerifyTables() const;
  Status VerifyPool() const;

  KvConfig config;
  KvStorage storage;
  BlockPool pool;
  SequenceTable sequences;
  // [num_blocks]: room for Usage, which allocates nothing.
  mutable std::vector<int64_t> filled_slots;
};

}  // namespace kvick

#endif  // KVICK_CACHE_KV_CACHE_STATE_H_
