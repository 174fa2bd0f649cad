#ifndef KVICK_MODEL_KV_TARGET_H_
#define KVICK_MODEL_KV_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  explicit CachedKv(int64_t max_sequences) { queries_.reserve(static_cast<size_t>(max_sequences)); }

  // Allocates nothing for up to max_sequences chunks.
  void Begin(KvCache& cache, std::span<const SequenceChunk> chunks);

  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override;
  std::span<const AttentionQuery> queries() const override { return queries_; }

 private:
  KvCache* cache_ = nullptr;
  std::span<const SequenceChunk> chunks_;
  std::vector<AttentionQuery> queries_;
};

// The keys and values of this very step: two plain buffers [T, K, D] that each layer overwrites.
// One sequence from position 0 on. Knows nothing of caches; a view of it is only other strides.
class UncachedKv : public KvTarget {
 public:
  UncachedKv(const AttentionConfig& config, int64_t num_layers, int64_t num_tokens);

  Status Write(int64_t layer, const TensorView& k, const TensorView& v) override;
  std::span<const AttentionQuery> queries() const override { return {&query_, 1}; }

 private:
  static constexpr BlockId kOnlyBlock{0};

  std::vector<std::byte> memory_;  // keys, then values
  AttentionQuery query_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_KV_TARGET_H_
