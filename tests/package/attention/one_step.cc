// Two tokens through the cache and the attention. Their keys are equal, so that the first token's
// output is its own value and the second's the mean of both, exactly.

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "kvick/attention.h"
#include "kvick/kv_cache.h"

namespace {

constexpr int64_t kNumHeads = 4;
constexpr int64_t kNumKvHeads = 2;
constexpr int64_t kHeadDim = 8;

// [2, num_heads, kHeadDim]: one number for all of the first token, one for all of the second.
std::vector<float> TwoTokens(int64_t num_heads, float first, float second) {
  std::vector<float> numbers(num_heads * kHeadDim, first);
  numbers.insert(numbers.end(), num_heads * kHeadDim, second);
  return numbers;
}

kvick::Status Step(kvick::KvCache& cache, kvick::Attention& attention, std::vector<float>& out) {
  const auto kv_shape = {int64_t{2}, kNumKvHeads, kHeadDim};
  const auto q_shape = {int64_t{2}, kNumHeads, kHeadDim};
  const auto keys = TwoTokens(kNumKvHeads, 1, 1);
  const auto values = TwoTokens(kNumKvHeads, 1, 3);
  const auto queries = TwoTokens(kNumHeads, 1, 1);

  auto plan = cache.Reserve(cache.CreateSequence(), 2);
  if (!plan) return tl::unexpected(plan.error());
  return cache
      .Write(*plan, 0, kvick::DenseF32(keys.data(), kv_shape),
             kvick::DenseF32(values.data(), kv_shape))
      .and_then([&] {
        const kvick::AttentionQuery query{cache.View(*plan).value(), 2};
        return attention.Run(0, {&query, 1}, kvick::DenseF32(queries.data(), q_shape),
                             kvick::DenseF32(out.data(), q_shape));
      })
      .and_then([&] { return cache.Commit(std::move(*plan)); });
}

kvick::Result<std::vector<float>> Attend() {
  auto cache = kvick::KvCache::Create(
      {.num_layers = 1, .num_kv_heads = kNumKvHeads, .head_dim = kHeadDim, .num_blocks = 1});
  if (!cache) return tl::unexpected(cache.error());
  auto attention = kvick::Attention::Create(
      {.num_heads = kNumHeads, .num_kv_heads = kNumKvHeads, .head_dim = kHeadDim});
  if (!attention) return tl::unexpected(attention.error());
  auto out = TwoTokens(kNumHeads, 0, 0);
  return Step(**cache, **attention, out).map([&] { return out; });
}

}  // namespace

int main() {
  const auto out = Attend();
  if (!out) {
    std::puts(out.error().message.c_str());
    return 1;
  }
  std::printf("%g and %g, wanted 1 and 2\n", out->front(), out->back());
  return *out == TwoTokens(kNumHeads, 1, 2) ? 0 : 1;
}
