#include "model/kv_target.h"

#include "base/check.h"
#include "base/dtype.h"

namespace kvick {
namespace {

// Tokens [first, first + num) of a tensor [T, ...].
TensorView Tokens(TensorView tensor, int64_t first, int64_t num) {
  tensor.data += first * tensor.strides[0] * DTypeBytes(tensor.dtype);
  tensor.shape[0] = num;
  return tensor;
}

}  // namespace

void CachedKv::Begin(KvCache& cache, std::span<const SequenceChunk> chunks) {
  cache_ = &cache;
  chunks_ = chunks;
  queries_.clear();
  for (const SequenceChunk& chunk : chunks) {
    queries_.push_back({cache.View(*chunk.plan), chunk.plan->num_tokens()});
  }
}

Status CachedKv::Write(int64_t layer, const TensorView& k, const TensorView& v) {
  int64_t first = 0;
  for (const SequenceChunk& chunk : chunks_) {
    const int64_t num = chunk.plan->num_tokens();
    KVICK_RETURN_IF_ERROR(
        cache_->Write(*chunk.plan, layer, Tokens(k, first, num), Tokens(v, first, num)));
    first += num;
  }
  return {};
}

UncachedKv::UncachedKv(const AttentionConfig& config, int64_t num_layers, int64_t num_tokens) {
  KvLayout layout;
  layout.num_layers = num_layers;
  layout.num_kv_heads = config.num_kv_heads;
  layout.head_dim = config.head_dim;
  layout.block_tokens = num_tokens;
  layout.dtype = config.dtype;
  layout.head_stride = config.head_dim * DTypeBytes(config.dtype);
  layout.slot_stride = config.num_kv_heads * layout.head_stride;
  layout.value_offset = num_tokens * layout.slot_stride;
  memory_.resize(static_cast<size_t>(2 * layout.value_offset));
  query_ = {{memory_.data(), &kOnlyBlock, num_tokens, layout}, num_tokens};
}

Status UncachedKv::Write(int64_t, const TensorView& k, const TensorView& v) {
  const KvLayout& layout = query_.kv.layout;
  const int64_t num_elements = query_.num_tokens * layout.num_kv_heads * layout.head_dim;
  ConvertFromF32(layout.dtype, reinterpret_cast<const float*>(k.data), num_elements,
                 memory_.data());
  ConvertFromF32(layout.dtype, reinterpret_cast<const float*>(v.data), num_elements,
                 memory_.data() + layout.value_offset);
  return {};
}

}  // namespace kvick
