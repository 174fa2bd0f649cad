#ifndef KVICK_CACHE_KV_CACHE_STATE_H_
#define KVICK_CACHE_KV_CACHE_STATE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "cache/filled_slots.h"
#include "cache/kv_storage.h"
#include "cache/prefix_index.h"
#include "kvick/kv_cache.h"

namespace kvick {

// The parts of a KvCache, and the steps that change more than one of them.
struct KvCacheState {
  // Errors: as KvCache::Create.
  static Result<std::shared_ptr<KvCacheState>> Create(const KvConfig& config);

  // The table of a sequence. Errors: not_found.
  Result<const BlockTable*> Find(SequenceId sequence) const;
  // The same for a change. Errors: also invalid_argument: the sequence has an open plan.
  Result<BlockTable*> FindForChange(SequenceId sequence);

  // Removes the last entry of a table. REQUIRES: no token of the table is in it.
  void PopBlock(BlockTable& table);
  // Adds or removes a reference of a sequence. When only the index still refers to a block, it
  // becomes evictable; slots that nobody fills any more are cleared.
  void Hold(BlockId block);
  void Release(BlockId block);
  // Keeps KvFill::kNan true: clears the slots in which no holder has a token.
  void ClearUnfilledSlots(BlockId block);
  // Appends the blocks for num_tokens more tokens. If the first of them falls into a shared last
  // block, a copy replaces it. Evicts if needed. Errors: exhausted; nothing has changed.
  Status Grow(BlockTable& table, int64_t num_tokens);
  // Makes the tokens of the open plan part of the sequence.
  void CommitPlan(BlockTable& table);
  // Undoes Reserve: pending blocks go back, a replaced block returns to its entry. Evicted blocks
  // stay evicted.
  void AbandonPlan(BlockTable& table);

  // Changes how many tokens of a table are committed; the only place that does. Cost: the entries
  // between the two lengths.
  void SetLength(BlockTable& table, int64_t length);
  // `slots` tokens of a sequence, in entry i of its table, are in block `to` and no longer in
  // `from`.
  void MoveFilledSlots(int64_t i, BlockId from, BlockId to, int64_t slots);
  // The most slots of a block that any sequence fills. All have the block in entry i.
  int64_t DeepestFill(int64_t i, BlockId block) const;

  int64_t num_available() const { return pool.num_free() + index.num_evictable(); }
  // REQUIRES: so many are available.
  void EvictUntilFree(int64_t num_blocks);
  // CachePrefix and FinishAndCache differ in the last block, where it is part-filled.
  enum class Tail { kLeave, kCache };
  Status CachePrefix(BlockTable& table, const PrefixScope& scope, std::span<const int32_t> tokens,
                     Tail tail);
  // Puts an equal block into entry i of a table and of all tables that share the block there: who
  // holds a block of the index must hold the path to it.
  void ReplaceEverywhere(BlockTable& table, size_t i, BlockId equal);

  Status VerifyTables() const;
  Status VerifyPool() const;
  Status VerifyFilledSlots() const;
  Status VerifyPrefixes() const;

  KvConfig config;
  KvStorage storage;
  BlockPool pool;
  SequenceTable sequences;
  PrefixIndex index;  // holds one reference of each block in it
  FilledSlots filled_slots;
};

}  // namespace kvick

#endif  // KVICK_CACHE_KV_CACHE_STATE_H_
