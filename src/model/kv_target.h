#ifndef KVICK_MODEL_KV_TARGET_H_
#define KVICK_MODEL_KV_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapped_array.h"
#include "kvick/attention.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/tensor.h"

namespace kvick {

// Where a forward pass puts the keys and values of its tokens, and where attention finds them.
class KvTarget {
 public:
  virtual ~KvTarget() = default;

  // k (rotated), v [T, K, D] f32, T the tokens of all sequences of the step in order.
  virtual Status Write(int64_t layer, const TensorView& k, const TensorView& v) = 0;
  // What the tokens attend to, once Write of the layer is done.
  virtual std::span<const AttentionQuery> queries() const = 0;
};

// The plans of a cache.
class CachedKv : public KvTarget {
 public:
  // Takes the chunks of the next pass. `queries` is memory for one query a chunk. All must outlive
  // the pass. Errors: invalid_argument: a plan that is not an open one of the cache.
  Status Begin(KvCache& cache, std::span<const SequenceChunk> chunks,
               std::span<AttentionQuery> queries);

  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override;
  std::span<const AttentionQuery> queries() const override { return queries_; }

 private:
  KvCache* cache_ = nullptr;
  std::span<const SequenceChunk> chunks_;
  std::span<const AttentionQuery> queries_;  // [chunks]
};

// The keys and values of the pass itself: two plain buffers [T, K, D] that each layer overwrites.
// One sequence from position 0 on. Knows nothing of caches; a view of it is only other strides.
class UncachedKv : public KvTarget {
 public:
  // Errors: exhausted: not enough memory for num_tokens.
  static Result<UncachedKv> Create(const AttentionConfig& config, int64_t num_layers,
                                   int64_t num_tokens);

  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override;
  std::span<const AttentionQuery> queries() const override { return {&query_, 1}; }

 private:
  static constexpr BlockId kOnlyBlock{0};

  UncachedKv(const KvLayout& layout, int64_t num_tokens, MappedArray<std::byte> memory);

  MappedArray<std::byte> memory_;  // keys, then values
  AttentionQuery query_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_KV_TARGET_H_
