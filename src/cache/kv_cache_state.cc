#include "cache/kv_cache_state.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

// Table entries that a sequence gets at once: all that it may need, up to 256 KiB of them. A
// sequence of more blocks, a million tokens in 16s, grows its table now and then.
int64_t ReservedTableEntries(const KvConfig& config) {
  constexpr int64_t kMost = 1 << 16;
  const int64_t most = std::min(config.num_blocks, kMost);
  if (config.max_sequence_tokens == 0) return most;
  return std::min(most, CeilDiv(config.max_sequence_tokens, config.block_tokens));
}

}  // namespace

KvCache::State::State(const KvConfig& the_config, KvStorage the_storage)
    : config(the_config),
      storage(std::move(the_storage)),
      pool(the_config.num_blocks),
      sequences(ReservedTableEntries(the_config)),
      index(the_config.num_blocks, the_config.block_tokens),
      filled_slots(static_cast<size_t>(the_config.num_blocks), 0) {}

Result<const BlockTable*> KvCache::State::Find(SequenceId sequence) const {
  if (const BlockTable* table = sequences.Find(sequence)) return table;
  return Fail(ErrorCode::kNotFound, "kv cache: sequence {}.{} does not exist, it was {}",
              sequence.index, sequence.generation,
              sequence.generation == 0 ? "never created" : "dropped");
}

Result<BlockTable*> KvCache::State::FindForChange(SequenceId sequence) {
  KVICK_RETURN_IF_ERROR(Find(sequence));
  BlockTable* table = sequences.Find(sequence);
  if (!table->has_open_plan()) return table;
  return Fail(ErrorCode::kInvalidArgument,
              "kv cache: sequence {} has an open plan of {} tokens, commit or drop it first",
              sequence.index, table->num_pending);
}

void KvCache::State::PopBlock(BlockTable& table) {
  const BlockId block = table.blocks.back();
  table.blocks.pop_back();
  Release(block);
}

void KvCache::State::Hold(BlockId block) {
  pool.Share(block);
  if (index.Contains(block)) index.Hold(block);
}

void KvCache::State::Release(BlockId block) {
  pool.Release(block);
  if (index.Contains(block) && !pool.is_shared(block)) index.MarkEvictable(block);
  ClearUnfilledSlots(block);
}

void KvCache::State::ClearUnfilledSlots(BlockId block) {
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

Status KvCache::State::Grow(BlockTable& table, int64_t num_tokens) {
  const int64_t used_slots = table.length % config.block_tokens;
  const int64_t num_blocks = CeilDiv(table.length + num_tokens, config.block_tokens);
  const int64_t num_new = num_blocks - std::ssize(table.blocks);
  const bool writes_shared = used_slots > 0 && pool.is_shared(table.blocks.back());
  // Without room for a copy, a block that the index alone shares leaves the index. What is known
  // behind it does so before, being among all that is available and needed.
  const bool takes_over = writes_shared && num_new == num_available() &&
                          pool.references(table.blocks.back()) == 2 &&
                          index.Contains(table.blocks.back());
  const int64_t num_needed = num_new + (writes_shared && !takes_over ? 1 : 0);
  if (num_needed > num_available()) {
    return Fail(ErrorCode::kExhausted,
                "kv cache: {} more tokens need {} blocks of {} tokens, {} of {} are free and {} "
                "evictable",
                num_tokens, num_needed, config.block_tokens, pool.num_free(), config.num_blocks,
                index.num_idle());
  }
  EvictUntilFree(num_needed);
  if (takes_over) {
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

void KvCache::State::EvictUntilFree(int64_t num_blocks) {
  while (pool.num_free() < num_blocks) Release(index.Evict());
}

Status KvCache::State::CachePrefix(BlockTable& table, const PrefixScope& scope,
                                   std::span<const int32_t> tokens, Tail tail) {
  if (std::ssize(tokens) != table.length) {
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: {} tokens are published of a sequence of {}, all are wanted",
                tokens.size(), table.length);
  }
  if (const auto conflict = index.FirstConflict(scope, tokens, table.blocks)) {
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: block {} of the sequence is known as other tokens or in another scope",
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

void KvCache::State::ReplaceEverywhere(BlockTable& table, size_t i, BlockId equal) {
  const BlockId block = table.blocks[i];
  const auto replace = [&](BlockId& entry) {
    if (entry != block) return;
    Hold(equal);
    entry = equal;
    Release(block);
  };
  replace(table.blocks[i]);
  if (pool.references(block) == 0) return;
  sequences.ForEach([&](BlockTable& fork) {
    if (i < fork.blocks.size()) replace(fork.blocks[i]);
    if (fork.replaced) replace(*fork.replaced);
  });
}

void KvCache::State::Abandon(BlockTable& table) {
  table.num_pending = 0;
  const int64_t num_committed = table.num_committed_blocks(config.block_tokens);
  while (static_cast<int64_t>(table.blocks.size()) > num_committed) PopBlock(table);
  if (table.replaced) {
    PopBlock(table);
    table.blocks.push_back(*table.replaced);
    table.replaced.reset();
  } else if (!table.blocks.empty()) {
    ClearUnfilledSlots(table.blocks.back());
  }
}

Status KvCache::State::VerifyTables() const {
  Status status;
  sequences.ForEach([&](const BlockTable& table) {
    const int64_t num_tokens = table.length + table.num_pending;
    const int64_t wanted = CeilDiv(num_tokens, config.block_tokens);
    std::vector<BlockId> sorted = table.blocks;
    std::sort(sorted.begin(), sorted.end());
    if (static_cast<int64_t>(table.blocks.size()) != wanted) {
      status = Fail(ErrorCode::kInternal, "kv cache: {} tokens hold {} blocks, {} are wanted",
                    num_tokens, table.blocks.size(), wanted);
    } else if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      status = Fail(ErrorCode::kInternal, "kv cache: a sequence holds a block twice");
    } else if (config.max_sequence_tokens > 0 && num_tokens > config.max_sequence_tokens) {
      status = Fail(ErrorCode::kInternal, "kv cache: a sequence has {} tokens, at most {} may be",
                    num_tokens, config.max_sequence_tokens);
    } else if (table.replaced && (!table.has_open_plan() || table.length == 0)) {
      status = Fail(ErrorCode::kInternal, "kv cache: a block is replaced without an open plan");
    }
  });
  return status;
}

Status KvCache::State::VerifyPool() const {
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
  for (BlockId block : pool.free_blocks()) ++times_free[static_cast<size_t>(block)];
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

// An idle block is one that the index alone holds, and the paths of all tables run from a root:
// what a table holds of the index is held with all that leads to it.
Status KvCache::State::VerifyPrefixes() const {
  KVICK_RETURN_IF_ERROR(index.Verify());
  int64_t num_known_alone = 0;
  for (int64_t i = 0; i < config.num_blocks; ++i) {
    const auto block = static_cast<BlockId>(i);
    num_known_alone += index.Contains(block) && !pool.is_shared(block);
  }
  if (num_known_alone != index.num_idle()) {
    return Fail(ErrorCode::kInternal, "kv cache: the index alone holds {} blocks, {} are evictable",
                num_known_alone, index.num_idle());
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
