#ifndef KVICK_CACHE_KV_STORAGE_H_
#define KVICK_CACHE_KV_STORAGE_H_

#include <utility>

#include "base/memory.h"
#include "kvick/kv_cache.h"
#include "kvick/kv_layout.h"

namespace kvick {

// The bytes of all blocks: written, copied and (where asked for) poisoned, never interpreted.
class KvStorage {
 public:
  // Fills in config.num_blocks where it is 0. Errors as KvCache::Create.
  static Result<KvStorage> Create(KvConfig& config);

  const KvLayout& layout() const { return layout_; }
  std::byte* base() const { return region_.data(); }

  // The key of a slot; its value is layout().value_offset after it.
  std::byte* Slot(BlockId block, int64_t layer, int64_t kv_head, int64_t slot) const {
    return base() + static_cast<int64_t>(block) * layout_.block_stride +
           layout_.KeyOffset(layer, kv_head, slot);
  }

  // Copies slots [0, num_slots) of all layers.
  void CopySlots(BlockId from, BlockId to, int64_t num_slots);
  // Marks slots [first_slot, block_tokens) as empty: KvFill::kNan overwrites them.
  void ClearSlots(BlockId block, int64_t first_slot);
  // Whether ClearSlots would change nothing. Always true without KvFill::kNan.
  bool SlotsAreClear(BlockId block, int64_t first_slot) const;

 private:
  KvStorage(const KvLayout& layout, KvFill fill, MappedRegion region)
      : layout_(layout), fill_(fill), region_(std::move(region)) {}

  KvLayout layout_;
  KvFill fill_;
  MappedRegion region_;
};

}  // namespace kvick

#endif  // KVICK_CACHE_KV_STORAGE_H_
