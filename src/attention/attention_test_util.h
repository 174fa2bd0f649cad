#ifndef KVICK_ATTENTION_ATTENTION_TEST_UTIL_H_
#define KVICK_ATTENTION_ATTENTION_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/isa.h"
#include "kvick/attention.h"
#include "kvick/kv_cache.h"

namespace kvick {

// Random keys and values of one sequence, the same for a seed whatever cache they are put into.
struct RandomSequence {
  std::vector<float> k, v, q;  // [T, K, D], [T, K, D], [T, H, D]
  int64_t num_tokens;

  RandomSequence(const AttentionConfig& config, int64_t tokens, uint32_t seed)
      : num_tokens(tokens) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    k.resize(tokens * config.num_kv_heads * config.head_dim);
    v.resize(k.size());
    q.resize(tokens * config.num_heads * config.head_dim);
    for (auto* numbers : {&k, &v, &q}) {
      for (float& number : *numbers) number = normal(random);
    }
  }
};

inline constexpr int64_t kTestLayers = 2;
inline constexpr int64_t kTestLayer = 1;

// A cache whose empty slots are NaN, with room for `max_tokens`.
inline std::unique_ptr<KvCache> MakeTestCache(const AttentionConfig& config, int64_t block_tokens,
                                              int64_t max_tokens) {
  KvConfig kv;
  kv.num_layers = kTestLayers;
  kv.num_kv_heads = config.num_kv_heads;
  kv.head_dim = config.head_dim;
  kv.dtype = config.dtype;
  kv.block_tokens = block_tokens;
  kv.num_blocks = max_tokens / block_tokens + 8;
  kv.fill = KvFill::kNan;
  return KvCache::Create(kv).value();
}

// Appends tokens [begin, end) of `data`; all layers but kTestLayer are zero.
inline void AppendTokens(KvCache& cache, SequenceId sequence, const RandomSequence& data,
                         int64_t begin, int64_t end) {
  auto plan = cache.Reserve(sequence, end - begin).value();
  const int64_t heads = cache.layout().num_kv_heads, dim = cache.layout().head_dim;
  const std::vector<float> zeros((end - begin) * heads * dim, 0.0f);
  for (int64_t layer = 0; layer < kTestLayers; ++layer) {
    const float* k = layer == kTestLayer ? data.k.data() + begin * heads * dim : zeros.data();
    const float* v = layer == kTestLayer ? data.v.data() + begin * heads * dim : zeros.data();
    ASSERT_TRUE(cache
                    .Write(plan, layer, DenseF32(k, {end - begin, heads, dim}),
                           DenseF32(v, {end - begin, heads, dim}))
                    .has_value());
  }
  ASSERT_TRUE(cache.Commit(std::move(plan)).has_value());
}

// Every implementation that this machine has, in every type of keys and values.
inline std::vector<std::pair<Isa, DType>> AvailableKernels() {
  std::vector<std::pair<Isa, DType>> kernels;
  for (Isa isa : AllIsas()) {
    for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
      if (IsaAvailable(isa)) kernels.emplace_back(isa, dtype);
    }
  }
  return kernels;
}

}  // namespace kvick

#endif  // KVICK_ATTENTION_ATTENTION_TEST_UTIL_H_
