#ifndef KVICK_CACHE_BLOCK_TABLE_H_
#define KVICK_CACHE_BLOCK_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/checked_math.h"
#include "kvick/kv_cache.h"

namespace kvick {

// One sequence: which blocks hold its positions, and how many of them are tokens.
//
// Invariants: blocks holds ceil((length + num_pending) / block_tokens) entries, all different;
// num_pending > 0 exactly while a plan is open; replaced is the shared block whose place the last
// committed entry has taken until the plan commits.
struct BlockTable {
  std::vector<BlockId> blocks;
  int64_t length = 0;       // committed tokens
  int64_t num_pending = 0;  // tokens of the open plan
  std::optional<BlockId> replaced;

  bool has_open_plan() const { return num_pending > 0; }
  int64_t num_committed_blocks(int64_t block_tokens) const { return CeilDiv(length, block_tokens); }
  // Slots of entry i that hold one of the first num_tokens tokens.
  static int64_t FilledSlots(int64_t i, int64_t num_tokens, int64_t block_tokens) {
    return std::clamp<int64_t>(num_tokens - i * block_tokens, 0, block_tokens);
  }
};

// Names to tables. A dropped name is never valid again: its place is reused under a new generation.
class SequenceTable {
 public:
  // Each sequence can hold up to that many blocks without a further allocation.
  explicit SequenceTable(int64_t reserved_blocks) : reserved_blocks_(reserved_blocks) {}

  SequenceId Create();
  // REQUIRES: the name is valid and its table empty.
  void Drop(SequenceId sequence);
  // Null where the name is not valid.
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
