#include "cache/kv_storage.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

// All bytes 0xff are a NaN in bf16, f16 and f32 alike.
constexpr std::byte kPoison{0xff};

// Calls body(offset in the block) for each (layer, K | V, kv_head): one contiguous row of slots.
template <class Body>
void ForEachHeadRow(const KvLayout& layout, Body&& body) {
  for (int64_t layer = 0; layer < layout.num_layers; ++layer) {
    for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
      body(layout.KeyOffset(layer, head, 0));
      body(layout.ValueOffset(layer, head, 0));
    }
  }
}

Result<int64_t> NumBlocks(const KvConfig& config, const KvLayout& layout) {
  const int64_t num_blocks =
      config.num_blocks > 0 ? config.num_blocks : config.max_bytes / layout.block_stride;
  if (config.num_blocks < 0 || config.max_bytes < 0 || num_blocks < 1) {
    return Fail(ErrorCode::kInvalidArgument,
                "kv cache: expected room for at least one block of {} bytes, got num_blocks {} and "
                "max_bytes {}",
                layout.block_stride, config.num_blocks, config.max_bytes);
  }
  const auto bytes = CheckedProduct({num_blocks, layout.block_stride});
  if (!bytes || *bytes > MappedRegion::kMaxBytes ||
      num_blocks > std::numeric_limits<int32_t>::max()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "kv cache: expected at most 2^31 - 1 blocks and 2^62 bytes, got {} blocks of {} bytes",
        num_blocks, layout.block_stride);
  }
  return num_blocks;
}

// A large block is filled row by row, and its rows are far apart: with huge pages, eight requests
// of 1,000 of 8,192 tokens (Llama 3 8B) made all 8 GiB resident instead of 1 GiB.
Backing BackingOf(const KvConfig& config, const KvLayout& layout) {
  if (config.backing == KvBacking::kUpFront) return Backing::kUpFront;
  return layout.block_stride > kHugePageBytes ? Backing::kOnDemandInSmallPages : Backing::kOnDemand;
}

}  // namespace

Result<KvStorage> KvStorage::Create(KvConfig& config) {
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(config));
  KVICK_ASSIGN_OR_RETURN(config.num_blocks, NumBlocks(config, layout));
  const int64_t num_bytes = config.num_blocks * layout.block_stride;
  auto region = MappedRegion::Create(num_bytes, BackingOf(config, layout));
  if (!region) {
    const int64_t available = AvailableMemoryBytes();
    const int64_t fit = available / layout.block_stride;
    return Fail(
        region.error().code,
        "kv cache: {} blocks of {} tokens need {} bytes, got {} available (room for {} blocks, {} "
        "tokens)",
        config.num_blocks, layout.block_tokens, num_bytes, available, fit,
        fit * layout.block_tokens);
  }
  KvStorage storage(layout, config.fill, *std::move(region));
  for (int64_t i = 0; config.fill == KvFill::kNan && i < config.num_blocks; ++i) {
    storage.ClearSlots(static_cast<BlockId>(i), 0);
  }
  return storage;
}

void KvStorage::CopySlots(BlockId from, BlockId to, int64_t num_slots) {
  const std::byte* source = Slot(from, 0, 0, 0);
  std::byte* target = Slot(to, 0, 0, 0);
  const auto num_bytes = static_cast<size_t>(num_slots * layout_.slot_stride);
  ForEachHeadRow(layout_,
                 [&](int64_t offset) { std::memcpy(target + offset, source + offset, num_bytes); });
}

void KvStorage::ClearSlots(BlockId block, int64_t first_slot) {
  if (fill_ != KvFill::kNan) return;
  std::byte* start = Slot(block, 0, 0, 0);
  const int64_t skip = first_slot * layout_.slot_stride;
  ForEachHeadRow(layout_, [&](int64_t offset) {
    std::memset(start + offset + skip, static_cast<int>(kPoison),
                static_cast<size_t>(layout_.head_stride - skip));
  });
}

bool KvStorage::SlotsAreClear(BlockId block, int64_t first_slot) const {
  if (fill_ != KvFill::kNan) return true;
  const std::byte* start = Slot(block, 0, 0, 0);
  bool clear = true;
  ForEachHeadRow(layout_, [&](int64_t offset) {
    const std::byte* row = start + offset;
    clear = clear && std::all_of(row + first_slot * layout_.slot_stride, row + layout_.head_stride,
                                 [](std::byte byte) { return byte == kPoison; });
  });
  return clear;
}

}  // namespace kvick
