#include "kvick/kv_layout.h"

#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

Status CheckPositive(const char* name, int64_t value) {
  if (value > 0) return {};
  return Fail(ErrorCode::kInvalidArgument, "kv cache: {}: expected at least 1, got {}", name,
              value);
}

}  // namespace

KvConfig KvConfig::Contiguous(int64_t batch, int64_t max_tokens) const {
  KvConfig config = *this;
  config.block_tokens = max_tokens;
  config.num_blocks = batch;
  config.max_sequence_tokens = max_tokens;
  return config;
}

Result<KvLayout> KvLayout::Create(const KvConfig& config) {
  KVICK_RETURN_IF_ERROR(CheckPositive("num_layers", config.num_layers));
  KVICK_RETURN_IF_ERROR(CheckPositive("num_kv_heads", config.num_kv_heads));
  KVICK_RETURN_IF_ERROR(CheckPositive("head_dim", config.head_dim));
  KVICK_RETURN_IF_ERROR(CheckPositive("block_tokens", config.block_tokens));
  const auto block_bytes =
      CheckedProduct({2, config.num_layers, config.num_kv_heads, config.head_dim,
                      config.block_tokens, DTypeBytes(config.dtype)});
  if (!block_bytes || *block_bytes > MappedRegion::kMaxBytes) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "kv cache: expected a block of at most 2^62 bytes, got 2 x {} layers x {} heads x {} x {} "
        "tokens",
        config.num_layers, config.num_kv_heads, config.head_dim, config.block_tokens);
  }
  KvLayout layout;
  layout.num_layers = config.num_layers;
  layout.num_kv_heads = config.num_kv_heads;
  layout.head_dim = config.head_dim;
  layout.block_tokens = config.block_tokens;
  layout.dtype = config.dtype;
  layout.slot_stride = config.head_dim * DTypeBytes(config.dtype);
  layout.head_stride = config.block_tokens * layout.slot_stride;
  layout.value_offset = config.num_kv_heads * layout.head_stride;
  layout.layer_stride = 2 * layout.value_offset;
  layout.block_stride = config.num_layers * layout.layer_stride;
  return layout;
}

}  // namespace kvick
