#include "cache/kv_cache_state.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

// Table entries that a sequence gets at once: all that it may need, up to 256 KiB of them. The
// table of a longer sequence, a million tokens in blocks of 16, grows now and then.
int64_t ReservedTableEntries(const KvConfig& config) {
  constexpr int64_t kMax = 1 << 16;
  const int64_t max = std::min(config.num_blocks, kMax);
  if (config.max_sequence_tokens == 0) return max;
  return std::min(max, CeilDiv(config.max_sequence_tokens, config.block_tokens));
}

}  // namespace

Result<std::shared_ptr<KvCacheState>> KvCacheState::Create(const KvConfig& config) {
  KvConfig complete = config;
  KVICK_ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(complete));
  const int64_t num_blocks = complete.num_blocks;
  const Backing backing =
      config.backing == KvBacking::kUpFront ? Backing::kUpFront : Backing::kOnDemand;
  KVICK_ASSIGN_OR_RETURN(BlockPool pool, BlockPool::Create(num_blocks, backing));
  KVICK_ASSIGN_OR_RETURN(PrefixIndex index,
                         PrefixIndex::Create(num_blocks, complete.block_tokens, backing));
  KVICK_ASSIGN_OR_RETURN(FilledSlots filled,
                         FilledSlots::Create(num_blocks, complete.block_tokens, backing));
  return std::make_shared<KvCacheState>(KvCacheState{complete, std::move(storage), std::move(pool),
                                                     SequenceTable(ReservedTableEntries(complete)),
                                                     std::move(index), std::move(filled)});
}

Result<const BlockTable*> KvCacheState::Find(SequenceId sequence) const {
  if (const BlockTable* table = sequences.Find(sequence)) return table;
  return Fail(ErrorCode::kNotFound,
              "kv cache: expected an existing sequence, got {}.{}, which was {}", sequence.index,
              sequence.generation, sequence.generation == 0 ? "never created" : "dropped");
}

Result<BlockTable*> KvCacheState::FindForChange(SequenceId sequence) {
  KVICK_RETURN_IF_ERROR(Find(sequence));
  BlockTable* table = sequences.Find(sequence);
  if (!table->has_open_plan()) return table;
  return Fail(
      ErrorCode::kInvalidArgument,
      "kv cache: expected a sequence without an open plan, got sequence {} with a plan of {} "
      "tokens (commit or drop it first)",
      sequence.index, table->num_pending);
}

void KvCacheState::PopBlock(BlockTable& table) {
  const BlockId block = table.blocks.back();
  table.blocks.pop_back();
  Release(block);
}

void KvCacheState::Hold(BlockId block) {
  pool.Share(block);
  if (index.Contains(block)) index.Hold(block);
}

void KvCacheState::Release(BlockId block) {
  pool.Release(block);
  if (index.Contains(block) && !pool.is_shared(block)) index.MarkEvictable(block);
  ClearUnfilledSlots(block);
}

void KvCacheState::ClearUnfilledSlots(BlockId block) {
  if (config.fill != KvFill::kNan) return;
  int64_t filled = index.NumTokens(block);
  sequences.ForEach([&](const BlockTable& table) {
    const int64_t num_tokens = table.length + table.num_pending;
    for (size_t i = 0; i < table.blocks.size(); ++i) {
      if (table.blocks[i] != block) continue;
      filled = std::max(filled, BlockTable::FilledSlots(static_cast<int64_t>(i), num_tokens,
                                                        config.block_tokens));
    }
    if (table.replaced == block) {
      filled = std::max(filled, table.length % config.block_tokens);
    }
  });
  storage.ClearSlots(block, filled);
}

Status KvCacheState::Grow(BlockTable& table, int64_t num_tokens) {
  const int64_t used_slots = table.length % config.block_tokens;
  const int64_t num_blocks = CeilDiv(table.length + num_tokens, config.block_tokens);
  const int64_t num_new = num_blocks - std::ssize(table.blocks);
  const bool writes_shared = used_slots > 0 && pool.is_shared(table.blocks.back());
  // Without room for a copy, a block that only the index shares leaves the index. Its children do
  // so before it: they are among the available blocks, all of which are needed.
  const bool detaches = writes_shared && num_new == num_available() &&
                        pool.references(table.blocks.back()) == 2 &&
                        index.Contains(table.blocks.back());
  const int64_t num_needed = num_new + (writes_shared && !detaches ? 1 : 0);
  if (num_needed > num_available()) {
    return Fail(
        ErrorCode::kExhausted,
        "kv cache: {} more tokens need {} blocks of {} tokens, got {} free and {} evictable "
        "ones of {}",
        num_tokens, num_needed, config.block_tokens, pool.num_free(), index.num_evictable(),
        config.num_blocks);
  }
  EvictUntilFree(num_needed);
  if (detaches) {
    index.Detach(table.blocks.back());
    Release(table.blocks.back());
  } else if (writes_shared) {
    const BlockId copy = pool.Allocate();
    storage.CopySlots(table.blocks.back(), copy, used_slots);
    table.replaced = std::exchange(table.blocks.back(), copy);
  }
  for (int64_t i = 0; i < num_new; ++i) table.blocks.push_back(pool.Allocate());
  return {};
}

void KvCacheState::EvictUntilFree(int64_t num_blocks) {
  while (pool.num_free() < num_blocks) Release(index.Evict());
}

Status KvCacheState::CachePrefix(BlockTable& table, const PrefixScope& scope,
                                 std::span<const int32_t> tokens, Tail tail) {
  if (std::ssize(tokens) != table.length) {
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: expected the {} tokens of the sequence to cache, got {}", table.length,
                tokens.size());
  }
  if (const auto conflict = index.FirstConflict(scope, tokens, table.blocks)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "kv cache: expected the tokens and scope that entry {} of the sequence was cached with, "
        "got others",
        *conflict);
  }
  const auto block_tokens = static_cast<size_t>(config.block_tokens);
  std::optional<BlockId> parent;
  for (size_t i = 0; i < table.blocks.size(); ++i) {
    const auto rest = tokens.subspan(i * block_tokens);
    const bool is_full = rest.size() >= block_tokens;
    if (!is_full && tail == Tail::kLeave) break;
    const BlockId block = table.blocks[i];
    const bool was_known = index.Contains(block);
    const PrefixIndex::Added added =
        index.Add(scope, parent, rest.first(std::min(rest.size(), block_tokens)), block);
    if (added.block == block && !was_known) pool.Share(block);
    if (added.superseded) Release(*added.superseded);
    if (added.block != block && is_full) ReplaceEverywhere(table, i, added.block);
    parent = added.block;
  }
  return {};
}

void KvCacheState::ReplaceEverywhere(BlockTable& table, size_t i, BlockId equal) {
  const BlockId block = table.blocks[i];
  const auto entry_idx = static_cast<int64_t>(i);
  const auto replace = [&](BlockId& entry, int64_t length) {
    if (entry != block) return;
    Hold(equal);
    entry = equal;
    MoveFilledSlots(entry_idx, block, equal,
                    BlockTable::FilledSlots(entry_idx, length, config.block_tokens));
    Release(block);
  };
  replace(table.blocks[i], table.length);
  if (pool.references(block) == 0) return;
  sequences.ForEach([&](BlockTable& fork) {
    if (i < fork.blocks.size()) replace(fork.blocks[i], fork.length);
    if (fork.replaced) replace(*fork.replaced, fork.length);
  });
}

void KvCacheState::CommitPlan(BlockTable& table) {
  const int64_t num_pending = std::exchange(table.num_pending, 0);
  if (table.replaced) {
    const int64_t i = table.length / config.block_tokens;
    const BlockId shared = *std::exchange(table.replaced, std::nullopt);
    MoveFilledSlots(i, shared, table.blocks[static_cast<size_t>(i)],
                    table.length % config.block_tokens);
    Release(shared);
  }
  SetLength(table, table.length + num_pending);
}

void KvCacheState::AbandonPlan(BlockTable& table) {
  table.num_pending = 0;
  const int64_t num_committed = table.num_committed_blocks(config.block_tokens);
  while (std::ssize(table.blocks) > num_committed) PopBlock(table);
  if (table.replaced) {
    PopBlock(table);
    table.blocks.push_back(*table.replaced);
    table.replaced.reset();
  } else if (!table.blocks.empty()) {
    ClearUnfilledSlots(table.blocks.back());
  }
}

void KvCacheState::SetLength(BlockTable& table, int64_t length) {
  const int64_t before = std::exchange(table.length, length);
  const int64_t block_tokens = config.block_tokens;
  const int64_t end = CeilDiv(std::max(before, length), block_tokens);
  for (int64_t i = std::min(before, length) / block_tokens; i < end; ++i) {
    const BlockId block = table.blocks[static_cast<size_t>(i)];
    filled_slots.Change(block, BlockTable::FilledSlots(i, before, block_tokens),
                        BlockTable::FilledSlots(i, length, block_tokens),
                        [&] { return DeepestFill(i, block); });
  }
}

void KvCacheState::MoveFilledSlots(int64_t i, BlockId from, BlockId to, int64_t slots) {
  filled_slots.Change(from, slots, 0, [&] { return DeepestFill(i, from); });
  filled_slots.Change(to, 0, slots, [&] { return DeepestFill(i, to); });
}

int64_t KvCacheState::DeepestFill(int64_t i, BlockId block) const {
  int64_t deepest = 0;
  sequences.ForEach([&](const BlockTable& table) {
    if (i >= table.num_committed_blocks(config.block_tokens)) return;
    if (table.CommittedBlock(i, config.block_tokens) != block) return;
    deepest = std::max(deepest, BlockTable::FilledSlots(i, table.length, config.block_tokens));
  });
  return deepest;
}

Status KvCacheState::VerifyTables() const {
  Status status;
  sequences.ForEach([&](const BlockTable& table) {
    const int64_t num_tokens = table.length + table.num_pending;
    const int64_t num_blocks = CeilDiv(num_tokens, config.block_tokens);
    std::vector<BlockId> sorted = table.blocks;
    std::sort(sorted.begin(), sorted.end());
    if (std::ssize(table.blocks) != num_blocks) {
      status = Fail(ErrorCode::kInternal, "kv cache: expected {} blocks for {} tokens, got {}",
                    num_blocks, num_tokens, table.blocks.size());
    } else if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      status = Fail(ErrorCode::kInternal, "kv cache: a sequence holds a block twice");
    } else if (config.max_sequence_tokens > 0 && num_tokens > config.max_sequence_tokens) {
      status =
          Fail(ErrorCode::kInternal, "kv cache: expected a sequence of at most {} tokens, got {}",
               config.max_sequence_tokens, num_tokens);
    } else if (table.replaced && (!table.has_open_plan() || table.length == 0)) {
      status = Fail(ErrorCode::kInternal, "kv cache: a block is replaced without an open plan");
    }
  });
  return status;
}

Status KvCacheState::VerifyPool() const {
  std::vector<int32_t> references(static_cast<size_t>(config.num_blocks), 0);
  std::vector<int64_t> filled(static_cast<size_t>(config.num_blocks), 0);
  const auto count = [&](BlockId block, int64_t num_slots) {
    const auto i = static_cast<size_t>(block);
    ++references[i];
    filled[i] = std::max(filled[i], num_slots);
  };
  for (int64_t i = 0; i < config.num_blocks; ++i) {
    const auto block = static_cast<BlockId>(i);
    if (index.Contains(block)) count(block, index.NumTokens(block));
  }
  sequences.ForEach([&](const BlockTable& table) {
    const int64_t num_tokens = table.length + table.num_pending;
    for (size_t i = 0; i < table.blocks.size(); ++i) {
      count(table.blocks[i],
            BlockTable::FilledSlots(static_cast<int64_t>(i), num_tokens, config.block_tokens));
    }
    if (table.replaced) count(*table.replaced, table.length % config.block_tokens);
  });
  std::vector<int32_t> times_free(static_cast<size_t>(config.num_blocks), 0);
  pool.ForEachFree([&](BlockId block) { ++times_free[static_cast<size_t>(block)]; });
  for (int64_t i = 0; i < config.num_blocks; ++i) {
    const auto block = static_cast<BlockId>(i);
    const auto at = static_cast<size_t>(i);
    if (pool.references(block) != references[at]) {
      return Fail(ErrorCode::kInternal, "kv cache: block {} counts {} references, {} hold it", i,
                  pool.references(block), references[at]);
    }
    if (times_free[at] != (references[at] == 0 ? 1 : 0)) {
      return Fail(ErrorCode::kInternal, "kv cache: block {} is {} times free and held by {}", i,
                  times_free[at], references[at]);
    }
    if (!storage.SlotsAreClear(block, filled[at])) {
      return Fail(ErrorCode::kInternal, "kv cache: block {} was written behind its {} filled slots",
                  i, filled[at]);
    }
  }
  return {};
}

// The filled slots, counted anew from all tables.
Status KvCacheState::VerifyFilledSlots() const {
  std::map<BlockId, int64_t> recount;
  sequences.ForEach([&](const BlockTable& table) {
    const int64_t num_blocks = table.num_committed_blocks(config.block_tokens);
    for (int64_t i = 0; i < num_blocks; ++i) {
      int64_t& slots = recount[table.CommittedBlock(i, config.block_tokens)];
      slots = std::max(slots, BlockTable::FilledSlots(i, table.length, config.block_tokens));
    }
  });
  int64_t total = 0;
  for (int64_t i = 0; i < config.num_blocks; ++i) {
    const auto block = static_cast<BlockId>(i);
    const auto found = recount.find(block);
    const int64_t slots = found == recount.end() ? 0 : found->second;
    total += slots;
    if (filled_slots.of(block) == slots) continue;
    return Fail(ErrorCode::kInternal, "kv cache: block {} counts {} filled slots, has {}", i,
                filled_slots.of(block), slots);
  }
  if (filled_slots.total() == total) return {};
  return Fail(ErrorCode::kInternal, "kv cache: {} filled slots are counted, there are {}",
              filled_slots.total(), total);
}

// Evictable are the blocks that only the index holds, and the paths of all tables run from a root:
// with a block of the index a table holds all that lead to it.
Status KvCacheState::VerifyPrefixes() const {
  KVICK_RETURN_IF_ERROR(index.Verify());
  int64_t num_known_alone = 0;
  for (int64_t i = 0; i < config.num_blocks; ++i) {
    const auto block = static_cast<BlockId>(i);
    num_known_alone += index.Contains(block) && !pool.is_shared(block);
  }
  if (num_known_alone != index.num_evictable()) {
    return Fail(ErrorCode::kInternal, "kv cache: the index alone holds {} blocks, {} are evictable",
                num_known_alone, index.num_evictable());
  }
  Status status;
  sequences.ForEach([&](const BlockTable& table) {
    if (status) status = index.VerifyPath(table.blocks);
    if (!status || !table.replaced) return;
    std::vector<BlockId> before_plan(table.blocks.begin(), table.blocks.end());
    before_plan.resize(static_cast<size_t>(table.num_committed_blocks(config.block_tokens)));
    before_plan.back() = *table.replaced;
    status = index.VerifyPath(before_plan);
  });
  return status;
}

}  // namespace kvick
