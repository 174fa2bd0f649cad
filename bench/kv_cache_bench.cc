// Appends one token to all layers of a cache: 32 layers, 8 KV heads of 128, bf16. Then the same in
// pools of different size, of tiny blocks: a step must take the same time in each.

#include <utility>
#include <vector>

#include "bench_util.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

constexpr int64_t kLayers = 32, kKvHeads = 8, kHeadDim = 128, kMaxTokens = 1024;

void BM_Append(benchmark::State& state) {
  KvConfig config;
  config.num_layers = kLayers;
  config.num_kv_heads = kKvHeads;
  config.head_dim = kHeadDim;
  config.block_tokens = state.range(0);
  config.num_blocks = kMaxTokens / config.block_tokens;
  const auto cache = KvCache::Create(config).value();
  const SequenceId sequence = cache->CreateSequence();
  const std::vector<float> row = RandomFloats(kKvHeads * kHeadDim);
  const TensorView rows = DenseF32(row.data(), {1, kKvHeads, kHeadDim});
  for (auto _ : state) {
    if (cache->Length(sequence).value() == kMaxTokens) Require(cache->Reset(sequence));
    auto plan = cache->Reserve(sequence, 1).value();
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      Require(cache->Write(plan, layer, rows, rows));
    }
    Require(cache->Commit(std::move(plan)));
  }
  SetRates(state, static_cast<double>(cache->layout().BytesPerToken()), 0);
}
BENCHMARK(BM_Append)->ArgName("block")->Arg(16)->Arg(kMaxTokens)->Unit(benchmark::kMicrosecond);

// The tables' share of a decode step, in blocks of one token.
void BM_PoolStep(benchmark::State& state) {
  KvConfig config;
  config.num_layers = config.num_kv_heads = config.head_dim = 1;
  config.block_tokens = 1;
  config.num_blocks = state.range(0);
  config.backing = KvBacking::kOnDemand;
  const auto cache = KvCache::Create(config).value();
  const SequenceId sequence = cache->CreateSequence();
  const float number = 1;
  const TensorView row = DenseF32(&number, {1, 1, 1});
  for (auto _ : state) {
    if (cache->Length(sequence).value() == kMaxTokens) Require(cache->Reset(sequence));
    auto plan = cache->Reserve(sequence, 1).value();
    Require(cache->Write(plan, 0, row, row));
    Require(cache->Commit(std::move(plan)));
    benchmark::DoNotOptimize(cache->Usage());
  }
}
BENCHMARK(BM_PoolStep)->ArgName("blocks")->Arg(1 << 11)->Arg(1 << 27);

}  // namespace
}  // namespace kvick
