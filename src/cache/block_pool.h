#ifndef KVICK_CACHE_BLOCK_POOL_H_
#define KVICK_CACHE_BLOCK_POOL_H_

#include <cstdint>
#include <vector>

#include "kvick/kv_layout.h"

namespace kvick {

// Who holds which block: a count of references each, and a stack of the free ones.
//
// Invariant: a block is on the free stack exactly if its count is 0. Allocates only when made.
class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(references_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int32_t references(BlockId block) const { return references_[static_cast<size_t>(block)]; }
  bool is_shared(BlockId block) const { return references(block) > 1; }
  const std::vector<BlockId>& free_blocks() const { return free_; }

  // A free block with one reference: the last one freed, or the lowest never used.
  // REQUIRES: num_free() > 0.
  BlockId Allocate();
  // One more holder. REQUIRES: references(block) > 0.
  void Share(BlockId block);
  // One holder less. True if it was the last: the block is free. REQUIRES: references(block) > 0.
  bool Release(BlockId block);

 private:
  std::vector<int32_t> references_;
  std::vector<BlockId> free_;
};

}  // namespace kvick

#endif  // KVICK_CACHE_BLOCK_POOL_H_
