// Two tokens through the cache and the attention. Their keys are equal, so that the first token's
// output is its own value and the second's the mean of both, exactly.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "kvick/attention.h"
#include "kvick/kv_cache.h"

namespace {

constexpr int64_t kNumTokens = 2;
constexpr int64_t kNumHeads = 4;
constexpr int64_t kNumKvHeads = 2;
constexpr int64_t kHeadDim = 8;

using Keys = std::array<float, kNumTokens * kNumKvHeads * kHeadDim>;
using Queries = std::array<float, kNumTokens * kNumHeads * kHeadDim>;

kvick::Status Step(kvick::KvCache& cache, kvick::Attention& attention, Queries& out) {
  const Keys keys{};
  Keys values;
  values.fill(1);
  std::fill(values.begin() + values.size() / 2, values.end(), 3);
  Queries queries;
  queries.fill(1);

  const kvick::SequenceId sequence = cache.CreateSequence();
  auto plan = cache.Reserve(sequence, kNumTokens);
  if (!plan) return tl::unexpected(plan.error());
  const auto shape = {kNumTokens, kNumKvHeads, kHeadDim};
  auto done = cache.Write(*plan, 0, kvick::DenseF32(keys.data(), shape),
                          kvick::DenseF32(values.data(), shape));
  if (!done) return done;
  const kvick::AttentionQuery query{cache.View(*plan), kNumTokens};
  const auto query_shape = {kNumTokens, kNumHeads, kHeadDim};
  done = attention.Run(0, {&query, 1}, kvick::DenseF32(queries.data(), query_shape),
                       kvick::DenseF32(out.data(), query_shape));
  if (!done) return done;
  return cache.Commit(std::move(*plan));
}

kvick::Result<Queries> Attend() {
  auto cache = kvick::KvCache::Create(
      {.num_layers = 1, .num_kv_heads = kNumKvHeads, .head_dim = kHeadDim, .num_blocks = 1});
  if (!cache) return tl::unexpected(cache.error());
  auto attention = kvick::Attention::Create(
      {.num_heads = kNumHeads, .num_kv_heads = kNumKvHeads, .head_dim = kHeadDim});
  if (!attention) return tl::unexpected(attention.error());
  Queries out;
  const auto done = Step(**cache, **attention, out);
  if (!done) return tl::unexpected(done.error());
  return out;
}

}  // namespace

int main() {
  Queries expected;
  expected.fill(1);
  std::fill(expected.begin() + expected.size() / 2, expected.end(), 2);

  const auto out = Attend();
  if (!out) return std::puts(out.error().message.c_str()), 1;
  std::printf("%g and %g, wanted 1 and 2\n", out->front(), out->back());
  return *out == expected ? 0 : 1;
}
