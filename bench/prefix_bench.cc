// The time of a prefix lookup in a full cache.

#include <random>
#include <utility>
#include <vector>

#include "bench_util.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

constexpr int64_t kTextTokens = 8192, kNumBlocks = 100000;

using Text = std::vector<int32_t>;

// Texts that differ from an earlier one from a random position on, until all blocks are indexed.
std::vector<Text> FillWithTexts(KvCache& cache, const PrefixScope& scope) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t end) { return static_cast<int64_t>(random() % end); };
  const std::vector<float> rows(kTextTokens);
  std::vector<Text> texts = {Text(kTextTokens)};
  while (cache.num_free_blocks() >= kTextTokens / cache.config().block_tokens) {
    Text text = texts[draw(std::ssize(texts))];
    for (int64_t i = draw(kTextTokens); i < kTextTokens; ++i) text[i] = draw(128256);
    const SequenceId sequence = cache.CreateSequence(scope, text);
    const int64_t num_new = kTextTokens - cache.Length(sequence).value();
    auto plan = cache.Reserve(sequence, num_new).value();
    const TensorView new_rows = DenseF32(rows.data(), {num_new, 1, 1});
    Require(cache.Write(plan, 0, new_rows, new_rows));
    Require(cache.Commit(std::move(plan)));
    Require(cache.FinishAndCache(sequence, scope, text));
    texts.push_back(std::move(text));
  }
  texts.erase(texts.begin());  // the first text was never cached
  return texts;
}

void BM_PrefixLookup(benchmark::State& state) {
  KvConfig config;
  config.num_layers = config.num_kv_heads = config.head_dim = 1;
  config.num_blocks = kNumBlocks;
  const auto cache = KvCache::Create(config).value();
  const PrefixScope scope = PrefixScope().Text("model", "bench");
  const std::vector<Text> texts = FillWithTexts(*cache, scope);
  size_t i = 0;
  for (auto _ : state) {
    const SequenceId sequence = cache->CreateSequence(scope, texts[i++ % texts.size()]);
    KVICK_CHECK(cache->Length(sequence).value() == kTextTokens);
    Require(cache->Drop(sequence));
  }
  state.counters["blocks"] = static_cast<double>(cache->prefix_stats().num_indexed_blocks);
  state.counters["texts"] = static_cast<double>(texts.size());
}
BENCHMARK(BM_PrefixLookup)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace kvick
