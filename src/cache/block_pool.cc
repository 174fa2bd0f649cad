#include "cache/block_pool.h"

#include "base/check.h"

namespace kvick {

Result<BlockPool> BlockPool::Create(int64_t num_blocks, Backing backing) {
  KVICK_ASSIGN_OR_RETURN(auto references, MappedArray<int32_t>::Create("kv cache: reference counts",
                                                                       num_blocks, backing));
  KVICK_ASSIGN_OR_RETURN(auto freed,
                         MappedArray<BlockId>::Create("kv cache: free list", num_blocks, backing));
  return BlockPool(std::move(references), std::move(freed));
}

BlockId BlockPool::Allocate() {
  KVICK_CHECK(num_free() > 0);
  const BlockId block =
      num_freed_ > 0 ? freed_[--num_freed_] : static_cast<BlockId>(next_unused_++);
  references_[static_cast<int64_t>(block)] = 1;
  return block;
}

void BlockPool::Share(BlockId block) {
  KVICK_CHECK(references(block) > 0);
  ++references_[static_cast<int64_t>(block)];
}

bool BlockPool::Release(BlockId block) {
  KVICK_CHECK(references(block) > 0);
  if (--references_[static_cast<int64_t>(block)] > 0) return false;
  freed_[num_freed_++] = block;
  return true;
}

}  // namespace kvick
