#ifndef KVICK_KV_LAYOUT_H_
#define KVICK_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

struct KvConfig;

// Identifies a block by its index in the pool: 0 .. num_blocks - 1.
enum class BlockId : int32_t {};

// Where each key and value is in memory. All index arithmetic of the cache is in this header.
//
//   block = [layer][K | V][kv_head][slot][head_dim]     row-major, one contiguous range of bytes
//
// A slot holds the keys and values of one token. A contiguous cache is a paged cache with
// block_tokens = max_tokens: one block a sequence.
//
// Units  strides and offsets: bytes;  block_tokens: slots;  head_dim: elements
struct KvLayout {
  int64_t num_layers = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t block_tokens = 0;
  DType dtype = DType::kBF16;

  int64_t slot_stride = 0;   ///< from a slot to the next one of the same head
  int64_t head_stride = 0;   ///< from a kv_head to the next one of the same slot
  int64_t value_offset = 0;  ///< from a key to the value of the same layer, head and slot
  int64_t layer_stride = 0;
  int64_t block_stride = 0;  ///< also the size of a block

  // Errors  invalid_argument: a number is not positive;
  //         a block is larger than 2^62 bytes
  static Result<KvLayout> Create(const KvConfig& config);

  // Keys and values of one token in all layers: 2 * L * K * D * element bytes.
  int64_t BytesPerToken() const { return block_stride / block_tokens; }

  int64_t KeyOffset(int64_t layer, int64_t kv_head, int64_t slot) const {
    return layer * layer_stride + kv_head * head_stride + slot * slot_stride;
  }
  int64_t ValueOffset(int64_t layer, int64_t kv_head, int64_t slot) const {
    return KeyOffset(layer, kv_head, slot) + value_offset;
  }
};

// The keys and values of one sequence, in whatever blocks they are: what attention reads.
//
// Plain data, cheap to copy. Valid until its sequence is reserved for, truncated or dropped.
// Only positions [begin, length) can be read: an empty slot cannot be reached by mistake.
struct KvView {
  const std::byte* base = nullptr;  ///< block 0 of the pool
  const BlockId* blocks = nullptr;  ///< [ceil(length / block_tokens)], in order of positions
  int64_t length = 0;               ///< tokens
  KvLayout layout;
  int64_t begin = 0;  ///< earlier positions are no longer held

  // [head_dim] elements of layout.dtype. REQUIRES: begin <= position < length.
  const std::byte* Key(int64_t layer, int64_t kv_head, int64_t position) const {
    const int64_t slot = position % layout.block_tokens;
    return BlockOf(position) + layout.KeyOffset(layer, kv_head, slot);
  }
  const std::byte* Value(int64_t layer, int64_t kv_head, int64_t position) const {
    return Key(layer, kv_head, position) + layout.value_offset;
  }

  // How many positions from this one on are slot_stride apart: up to the end of the block.
  int64_t RunLength(int64_t position) const {
    const int64_t in_block = layout.block_tokens - position % layout.block_tokens;
    return in_block < length - position ? in_block : length - position;
  }

 private:
  const std::byte* BlockOf(int64_t position) const {
    return base +
           static_cast<int64_t>(blocks[position / layout.block_tokens]) * layout.block_stride;
  }
};

}  // namespace kvick

#endif  // KVICK_KV_LAYOUT_H_
