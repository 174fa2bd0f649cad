#ifndef KVICK_CACHE_BLOCK_TABLE_H_
#define KVICK_CACHE_BLOCK_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/checked_math.h"
#include "kvick/kv_cache.h"

namespace kvick {

// One sequence: the blocks that hold its positions, and how many tokens are in them.
//
// Invariants: blocks has ceil((length + num_pending) / block_tokens) entries, all different;
// num_pending > 0 exactly while a plan is open. Where the plan writes into a shared block, a copy
// stands in that block's entry, and `replaced` is the shared block until the plan commits.
struct BlockTable {
  std::vector<BlockId> blocks;
  int64_t length = 0;       // committed tokens
  int64_t num_pending = 0;  // tokens of the open plan
  std::optional<BlockId> replaced;

  bool has_open_plan() const { return num_pending > 0; }
  int64_t num_committed_blocks(int64_t block_tokens) const { return CeilDiv(length, block_tokens); }
  // The block of entry i that holds committed tokens. REQUIRES: i < num_committed_blocks().
  BlockId CommittedBlock(int64_t i, int64_t block_tokens) const {
    return replaced && i == length / block_tokens ? *replaced : blocks[static_cast<size_t>(i)];
  }
  // Slots of entry i that hold one of the first num_tokens tokens.
  static int64_t FilledSlots(int64_t i, int64_t num_tokens, int64_t block_tokens) {
    return std::clamp<int64_t>(num_tokens - i * block_tokens, 0, block_tokens);
  }
};

// The tables by id. The id of a dropped sequence is never valid again: its place is reused under a
// new generation.
class SequenceTable {
 public:
  // Each sequence holds up to reserved_blocks blocks without another allocation.
  explicit SequenceTable(int64_t reserved_blocks) : reserved_blocks_(reserved_blocks) {}

  SequenceId Create();
  // REQUIRES: the id is valid and its table empty.
  void Drop(SequenceId sequence);
  // Null where the id is not valid.
  BlockTable* Find(SequenceId sequence);
  const BlockTable* Find(SequenceId sequence) const;
  int64_t num_sequences() const { return num_live_; }

  // Calls body(table) for each sequence.
  template <class Body>
  void ForEach(Body&& body) const {
    for (const Place& place : places_) {
      if (place.is_live) body(place.table);
    }
  }
  template <class Body>
  void ForEach(Body&& body) {
    for (Place& place : places_) {
      if (place.is_live) body(place.table);
    }
  }

 private:
  struct Place {
    BlockTable table;
    uint32_t generation = 0;
    bool is_live = false;
  };

  int64_t reserved_blocks_;
  int64_t num_live_ = 0;
  std::vector<Place> places_;
  std::vector<int32_t> free_places_;
};

}  // namespace kvick

#endif  // KVICK_CACHE_BLOCK_TABLE_H_
