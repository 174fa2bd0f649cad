#include "cache/block_pool.h"

#include "base/check.h"

namespace kvick {

BlockPool::BlockPool(int64_t num_blocks) : references_(static_cast<size_t>(num_blocks), 0) {
  free_.reserve(static_cast<size_t>(num_blocks));
  for (int64_t i = num_blocks; i-- > 0;) free_.push_back(static_cast<BlockId>(i));
}

BlockId BlockPool::Allocate() {
  KVICK_CHECK(!free_.empty());
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::Share(BlockId block) {
  KVICK_CHECK(references(block) > 0);
  ++references_[static_cast<size_t>(block)];
}

bool BlockPool::Release(BlockId block) {
  KVICK_CHECK(references(block) > 0);
  if (--references_[static_cast<size_t>(block)] > 0) return false;
  free_.push_back(block);
  return true;
}

}  // namespace kvick
