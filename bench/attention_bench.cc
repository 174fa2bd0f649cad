// One layer of attention with 32 query heads and 8 KV heads of 128: new tokens at the end of a
// context.

#include <memory>
#include <utility>
#include <vector>

#include "bench_util.h"
#include "kvick/attention.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

constexpr int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 128;

// Appends a sequence of random tokens.
SequenceId AddSequence(KvCache& cache, int64_t num_tokens) {
  const std::vector<float> rows = RandomFloats(num_tokens * kKvHeads * kHeadDim);
  const TensorView view = DenseF32(rows.data(), {num_tokens, kKvHeads, kHeadDim});
  const SequenceId sequence = cache.CreateSequence();
  auto plan = cache.Reserve(sequence, num_tokens).value();
  Require(cache.Write(plan, 0, view, view));
  Require(cache.Commit(std::move(plan)));
  return sequence;
}

// A cache of one layer with room for one sequence. block_tokens 0: one block for all tokens.
std::unique_ptr<KvCache> MakeCache(DType dtype, int64_t num_tokens, int64_t block_tokens) {
  KvConfig config;
  config.num_layers = 1;
  config.num_kv_heads = kKvHeads;
  config.head_dim = kHeadDim;
  config.dtype = dtype;
  config.block_tokens = block_tokens > 0 ? block_tokens : num_tokens;
  config.num_blocks = (num_tokens + config.block_tokens - 1) / config.block_tokens;
  return KvCache::Create(config).value();
}

template <DType kType>
void BM_Attention(benchmark::State& state) {
  const int64_t num_new = state.range(0), num_tokens = state.range(1) + num_new;
  const auto cache = MakeCache(kType, num_tokens, state.range(2));
  const SequenceId sequence = AddSequence(*cache, num_tokens);
  AttentionConfig config;
  config.num_heads = kHeads;
  config.num_kv_heads = kKvHeads;
  config.head_dim = kHeadDim;
  config.dtype = kType;
  const auto attention = Attention::Create(config).value();
  const AttentionQuery query{cache->View(sequence).value(), num_new};
  const std::vector<float> q = RandomFloats(num_new * kHeads * kHeadDim);
  std::vector<float> out(q.size());
  for (auto _ : state) {
    Require(attention->Run(0, {&query, 1}, DenseF32(q.data(), {num_new, kHeads, kHeadDim}),
                           DenseF32(out.data(), {num_new, kHeads, kHeadDim})));
  }
  const auto new_tokens = static_cast<double>(num_new);
  const double num_seen =
      new_tokens * static_cast<double>(state.range(1)) + new_tokens * (new_tokens + 1) / 2;
  SetRates(state, 2.0 * static_cast<double>(num_tokens * kKvHeads * kHeadDim * DTypeBytes(kType)),
           4.0 * kHeads * kHeadDim * num_seen);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"new", "context", "block"});
  bench->ArgsProduct({{1, 512}, {511, 16384}, {0, 16}});
  bench->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK_TEMPLATE(BM_Attention, DType::kBF16)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Attention, DType::kF16)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Attention, DType::kF32)->Apply(Sizes);

}  // namespace
}  // namespace kvick
