#ifndef KVICK_CACHE_BLOCK_POOL_H_
#define KVICK_CACHE_BLOCK_POOL_H_

#include <cstdint>
#include <utility>

#include "base/mapped_array.h"
#include "base/memory.h"
#include "kvick/kv_layout.h"

namespace kvick {

// A reference count for each block, and a stack of the free ones.
//
// Invariant: a block is free exactly if its count is 0. The stack holds the blocks that were freed;
// blocks from next_unused_ on have never been used and are in no list, so that creating a pool
// takes the same time for any size.
class BlockPool {
 public:
  // Errors  exhausted: less memory than the tables need
  static Result<BlockPool> Create(int64_t num_blocks, Backing backing);

  int64_t num_blocks() const { return references_.size(); }
  int64_t num_free() const { return num_freed_ + num_blocks() - next_unused_; }
  int32_t references(BlockId block) const { return references_[static_cast<int64_t>(block)]; }
  bool is_shared(BlockId block) const { return references(block) > 1; }

  // A free block with one reference: the last one freed, or else the lowest that was never used.
  // REQUIRES: num_free() > 0.
  BlockId Allocate();
  // Adds a reference. REQUIRES: references(block) > 0.
  void Share(BlockId block);
  // Removes a reference. True if it was the last: the block is free. REQUIRES: references(block) >
  // 0.
  bool Release(BlockId block);

  // Calls body(block) for each free block.
  template <class Body>
  void ForEachFree(Body&& body) const {
    for (int64_t i = 0; i < num_freed_; ++i) body(freed_[i]);
    for (int64_t i = next_unused_; i < num_blocks(); ++i) body(static_cast<BlockId>(i));
  }

 private:
  BlockPool(MappedArray<int32_t> references, MappedArray<BlockId> freed)
      : references_(std::move(references)), freed_(std::move(freed)) {}

  MappedArray<int32_t> references_;  // [num_blocks]
  MappedArray<BlockId> freed_;       // [num_blocks], of which num_freed_ are in use
  int64_t num_freed_ = 0;
  int64_t next_unused_ = 0;
};

}  // namespace kvick

#endif  // KVICK_CACHE_BLOCK_POOL_H_
