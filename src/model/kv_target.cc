#include "model/kv_target.h"

#include <utility>

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

Status CachedKv::Begin(KvCache& cache, std::span<const SequenceChunk> chunks,
                       std::span<AttentionQuery> queries) {
  KVICK_CHECK(queries.size() >= chunks.size());
  cache_ = &cache;
  chunks_ = chunks;
  for (size_t i = 0; i < chunks.size(); ++i) {
    KVICK_ASSIGN_OR_RETURN(const KvView view, cache.View(*chunks[i].plan));
    queries[i] = {view, chunks[i].plan->num_tokens()};
  }
  queries_ = queries.first(chunks.size());
  return {};
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

Result<UncachedKv> UncachedKv::Create(const AttentionConfig& config, int64_t num_layers,
                                      int64_t num_tokens) {
  KvLayout layout;
  layout.num_layers = num_layers;
  layout.num_kv_heads = config.num_kv_heads;
  layout.head_dim = config.head_dim;
  layout.block_tokens = num_tokens;
  layout.dtype = config.dtype;
  layout.head_stride = config.head_dim * DTypeBytes(config.dtype);
  layout.slot_stride = config.num_kv_heads * layout.head_stride;
  layout.value_offset = num_tokens * layout.slot_stride;
  KVICK_ASSIGN_OR_RETURN(
      auto memory, MappedArray<std::byte>::Create("model: keys and values", 2 * layout.value_offset,
                                                  Backing::kOnDemand));
  return UncachedKv(layout, num_tokens, std::move(memory));
}

UncachedKv::UncachedKv(const KvLayout& layout, int64_t num_tokens, MappedArray<std::byte> memory)
    : memory_(std::move(memory)),
      query_{{&memory_[0], &kOnlyBlock, num_tokens, layout}, num_tokens} {}

Status UncachedKv::Write(int64_t, const TensorView& k, const TensorView& v) {
  const KvLayout& layout = query_.kv.layout;
  const int64_t num_elements = query_.num_tokens * layout.num_kv_heads * layout.head_dim;
  ConvertFromF32(layout.dtype, reinterpret_cast<const float*>(k.data), num_elements, &memory_[0]);
  ConvertFromF32(layout.dtype, reinterpret_cast<const float*>(v.data), num_elements,
                 &memory_[layout.value_offset]);
  return {};
}

}  // namespace kvick
