// The promise, at the level of attention: equal bits however the same work is cut.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "attention/attention_test_util.h"
#include "kvick/attention.h"

namespace kvick {
namespace {

struct Cut {
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 1 << 20;  // new tokens a step
  int num_threads = 1;
};

// All tokens of `data` through a fresh cache, `chunk_tokens` at a time. Returns out [T, H, D].
std::vector<float> RunCut(AttentionConfig config, const RandomSequence& data, const Cut& cut) {
  config.num_threads = cut.num_threads;
  auto attention = Attention::Create(config).value();
  auto cache = MakeTestCache(config, cut.block_tokens, data.num_tokens);
  const SequenceId sequence = cache->CreateSequence();
  const int64_t row_floats = config.num_heads * config.head_dim;
  std::vector<float> out(data.q.size());
  for (int64_t begin = 0; begin < data.num_tokens; begin += cut.chunk_tokens) {
    const int64_t end = std::min(begin + cut.chunk_tokens, data.num_tokens);
    AppendTokens(*cache, sequence, data, begin, end);
    const AttentionQuery query{cache->View(sequence).value(), end - begin};
    const auto status = attention->Run(kTestLayer, {&query, 1},
                                       DenseF32(data.q.data() + begin * row_floats,
                                                {end - begin, config.num_heads, config.head_dim}),
                                       DenseF32(out.data() + begin * row_floats,
                                                {end - begin, config.num_heads, config.head_dim}));
    EXPECT_TRUE(status.has_value());
  }
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  int64_t num_heads, num_kv_heads, head_dim, num_tokens;
};

constexpr Case kCases[] = {{9, 3, 64, 40},  {32, 8, 128, 20}, {8, 1, 16, 520},
                           {4, 2, 18, 530}, {2, 2, 100, 70},  {2, 2, 8, 1030},
                           {6, 2, 2, 530},  {8, 1, 4, 70},    {4, 4, 6, 520}};

TEST(AttentionExactness, BlocksChunksAndThreadsChangeNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const Case& c : kCases) {
      const AttentionConfig config{c.num_heads, c.num_kv_heads, c.head_dim, dtype,
                                   0,           IsaName(isa),   1};
      const RandomSequence data(config, c.num_tokens, 42);
      const std::vector<float> wanted = RunCut(config, data, {c.num_tokens});
      for (const Cut& cut :
           {Cut{16}, Cut{64, 64}, Cut{7, 7, 2}, Cut{c.num_tokens, 1, 2}, Cut{16, 1, 1},
            Cut{7, 1, 1}, Cut{16, 1, 3}, Cut{1, 100, 2}, Cut{48, 37, 5}}) {
        ASSERT_TRUE(SameBits(wanted, RunCut(config, data, cut)))
            << IsaName(isa) << " " << DTypeName(dtype) << ", H " << c.num_heads << ", D "
            << c.head_dim << ": blocks of " << cut.block_tokens << ", chunks of "
            << cut.chunk_tokens << ", " << cut.num_threads << " threads";
      }
    }
  }
}

TEST(AttentionExactness, OthersInTheBatchChangeNoBit) {
  constexpr int64_t kLengths[] = {1, 530, 16, 75};
  constexpr int64_t kNew[] = {1, 3, 16, 40};
  for (const auto& [isa, dtype] : AvailableKernels()) {
    const AttentionConfig config{6, 2, 32, dtype, 0, IsaName(isa), 2};
    auto attention = Attention::Create(config).value();
    auto cache = MakeTestCache(config, 16, 1024);
    std::vector<AttentionQuery> queries;
    std::vector<float> q, alone;
    const int64_t row_floats = config.num_heads * config.head_dim;
    for (int i = 0; i < 4; ++i) {
      const RandomSequence data(config, kLengths[i], static_cast<uint32_t>(i));
      const SequenceId sequence = cache->CreateSequence();
      AppendTokens(*cache, sequence, data, 0, kLengths[i]);
      queries.push_back({cache->View(sequence).value(), kNew[i]});
      q.insert(q.end(), data.q.end() - kNew[i] * row_floats, data.q.end());
      alone.resize(q.size());
      const int64_t first = static_cast<int64_t>(q.size()) - kNew[i] * row_floats;
      ASSERT_TRUE(attention->Run(kTestLayer, {&queries.back(), 1},
                                 DenseF32(q.data() + first, {kNew[i], 6, 32}),
                                 DenseF32(alone.data() + first, {kNew[i], 6, 32})));
    }
    std::vector<float> together(q.size());
    ASSERT_TRUE(attention->Run(kTestLayer, queries, DenseF32(q.data(), {60, 6, 32}),
                               DenseF32(together.data(), {60, 6, 32})));
    EXPECT_TRUE(SameBits(alone, together)) << IsaName(isa) << " " << DTypeName(dtype);
  }
}

// Fresh keys and values lie [token][head][dim] in two buffers; a view of them is only other
// strides.
TEST(AttentionExactness, StridesChangeNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    if (dtype != DType::kF32) continue;
    const AttentionConfig config{6, 2, 32, dtype, 0, IsaName(isa), 2};
    const RandomSequence data(config, 80, 9);
    const std::vector<float> wanted = RunCut(config, data, {});
    const BlockId block{0};
    KvView view;
    view.base = reinterpret_cast<const std::byte*>(data.k.data());
    view.blocks = &block;
    view.length = 80;
    view.layout = {
        1,     2,          32,     80,
        dtype, 2 * 32 * 4, 32 * 4, reinterpret_cast<const std::byte*>(data.v.data()) - view.base,
        0,     0};
    const AttentionQuery query{view, 80};
    std::vector<float> out(data.q.size());
    auto attention = Attention::Create(config).value();
    ASSERT_TRUE(attention->Run(0, {&query, 1}, DenseF32(data.q.data(), {80, 6, 32}),
                               DenseF32(out.data(), {80, 6, 32})));
    EXPECT_TRUE(SameBits(wanted, out)) << IsaName(isa);
  }
}

}  // namespace
}  // namespace kvick
