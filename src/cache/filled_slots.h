#ifndef KVICK_CACHE_FILLED_SLOTS_H_
#define KVICK_CACHE_FILLED_SLOTS_H_

#include <cstdint>
#include <utility>

#include "base/mapped_array.h"
#include "base/memory.h"
#include "kvick/kv_layout.h"

namespace kvick {

// How many slots of each block hold a committed token of a sequence, and their sum, kept up to date
// with every change: reading it costs the same however large the pool is.
//
// Sequences that share a block may fill it to different depths, because a fork may be truncated.
// The deepest counts. Only the last block of a sequence can be part-filled, so that a search for
// the deepest is rare. The caller makes it: it knows the sequences.
class FilledSlots {
 public:
  // Errors  exhausted: less memory than the tables need
  static Result<FilledSlots> Create(int64_t num_blocks, int64_t block_tokens, Backing backing) {
    KVICK_ASSIGN_OR_RETURN(
        auto counts, MappedArray<Count>::Create("kv cache: slot counts", num_blocks, backing));
    return FilledSlots(std::move(counts), block_tokens);
  }

  // Slots in use, a shared one once.
  int64_t total() const { return total_; }
  int64_t of(BlockId block) const { return counts_[static_cast<int64_t>(block)].deepest; }

  // A sequence that filled `from` slots of the block now fills `to`; 0: it does not hold it.
  // deepest() returns the most slots that any sequence fills now; called only where that is
  // unknown.
  template <class Deepest>
  void Change(BlockId block, int64_t from, int64_t to, Deepest&& deepest) {
    Count& count = counts_[static_cast<int64_t>(block)];
    count.num_full += (to == block_tokens_ ? 1 : 0) - (from == block_tokens_ ? 1 : 0);
    const int64_t before = count.deepest;
    if (to > before) {
      count.deepest = to;
    } else if (from == before && count.num_full == 0) {
      count.deepest = deepest();
    }
    total_ += count.deepest - before;
  }

 private:
  struct Count {
    int64_t deepest;   // slots that the sequence with the most of them fills
    int64_t num_full;  // sequences that fill the whole block
  };

  FilledSlots(MappedArray<Count> counts, int64_t block_tokens)
      : counts_(std::move(counts)), block_tokens_(block_tokens) {}

  MappedArray<Count> counts_;  // [num_blocks]
  int64_t block_tokens_;
  int64_t total_ = 0;
};

}  // namespace kvick

#endif  // KVICK_CACHE_FILLED_SLOTS_H_
