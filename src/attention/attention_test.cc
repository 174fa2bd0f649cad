#include "kvick/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/attention_ref.h"
#include "attention/attention_test_util.h"
#include "base/dtype.h"

namespace kvick {
namespace {

struct Geometry {
  int64_t num_heads, num_kv_heads, head_dim;
};

constexpr Geometry kGeometries[] = {{9, 3, 64},  {32, 8, 128}, {8, 1, 64},  {4, 4, 8},
                                    {4, 2, 80},  {2, 1, 100},  {2, 2, 256}, {6, 2, 18},
                                    {16, 8, 96}, {3, 1, 2},    {4, 2, 4},   {5, 1, 6}};

// A bound from the rounding errors of the formula, not a guess. With the unit roundoffs
//   u_q of the queries, u_p of the weights (on tiles 2^-16, a sum of two bf16, and 2^-8; else
//   2^-24)
// and a = max_s scale * sum_d |q k|, a score is off by at most e = a * (u_q + (D + 2) * 2^-23),
// with a soft cap by 5 * 2^-23 more, a weight by a factor exp(2e), and the sum over s adds u_p + (S
// + 16) * 2^-23 of sum_s p |v|.
struct Bound {
  double relative;            // of sum_s p |v|
  std::vector<double> scale;  // [D]: sum_s p |v|
};

// Positions [begin, end) of a KV head, which a row sees.
struct SeenRows {
  int64_t kv_head, begin, end;
};

Bound BoundOfRow(const AttentionConfig& config, const KvView& kv, const SeenRows& seen,
                 const float* q) {
  const int64_t kv_head = seen.kv_head, head_dim = kv.layout.head_dim;
  const bool on_tiles = UsesTiles(ParseIsa(config.exec.isa).value(), config.dtype);
  std::vector<float> row(head_dim);
  std::vector<double> scores(seen.end);
  double largest = 0;
  for (int64_t s = seen.begin; s < seen.end; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Key(kTestLayer, kv_head, s), head_dim, row.data());
    double dot = 0, absolute = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      dot += static_cast<double>(q[d]) * row[d];
      absolute += std::abs(static_cast<double>(q[d]) * row[d]);
    }
    scores[s] = dot / std::sqrt(head_dim);
    if (config.soft_cap > 0) scores[s] = config.soft_cap * std::tanh(scores[s] / config.soft_cap);
    largest = std::max(largest, absolute / std::sqrt(head_dim));
  }
  const double max = *std::max_element(scores.begin() + seen.begin, scores.end());
  double sum = 0;
  for (int64_t s = seen.begin; s < seen.end; ++s) sum += scores[s] = std::exp(scores[s] - max);
  Bound bound{0, std::vector<double>(head_dim, 0.0)};
  for (int64_t s = seen.begin; s < seen.end; ++s) {
    ConvertToF32(kv.layout.dtype, kv.Value(kTestLayer, kv_head, s), head_dim, row.data());
    for (int64_t d = 0; d < head_dim; ++d) bound.scale[d] += scores[s] / sum * std::abs(row[d]);
  }
  const double query_rounding = std::ldexp(1, on_tiles ? -16 : -24);
  const double weight_rounding = std::ldexp(1, on_tiles ? -8 : -24);
  const double eps = std::ldexp(1, -23);
  const int64_t num_roundings = head_dim + 2 + (config.soft_cap > 0 ? 5 : 0);
  const double score_error = largest * (query_rounding + num_roundings * eps);
  const int64_t num_seen = seen.end - seen.begin;
  bound.relative = std::expm1(2 * score_error) + weight_rounding + (num_seen + 16) * eps;
  return bound;
}

void ExpectNearReference(const AttentionConfig& config, int64_t num_tokens, int64_t num_new) {
  const RandomSequence data(config, num_tokens, 11);
  auto cache = MakeTestCache(config, 16, num_tokens);
  const SequenceId sequence = cache->CreateSequence();
  AppendTokens(*cache, sequence, data, 0, num_tokens);
  const AttentionQuery query{cache->View(sequence).value(), num_new};
  const int64_t row_floats = config.num_heads * config.head_dim;
  const float* q = data.q.data() + (num_tokens - num_new) * row_floats;
  std::vector<float> out(num_new * row_floats);
  auto attention = Attention::Create(config).value();
  const auto status = attention->Run(
      kTestLayer, {&query, 1}, DenseF32(q, {num_new, config.num_heads, config.head_dim}),
      DenseF32(out.data(), {num_new, config.num_heads, config.head_dim}));
  ASSERT_TRUE(status.has_value()) << status.error().message;
  const std::vector<double> wanted = AttentionRef(config, kTestLayer, {&query, 1}, {q, out.size()});
  const int64_t window = config.windows.empty() ? num_tokens : config.windows[kTestLayer];
  for (int64_t row = 0; row < num_new * config.num_heads; ++row) {
    const int64_t kv_head = row % config.num_heads / (config.num_heads / config.num_kv_heads);
    const int64_t end = num_tokens - num_new + row / config.num_heads + 1;
    const Bound bound =
        BoundOfRow(config, query.kv, {kv_head, std::max<int64_t>(0, end - window), end},
                   q + row * config.head_dim);
    for (int64_t d = 0; d < config.head_dim; ++d) {
      const int64_t i = row * config.head_dim + d;
      ASSERT_NEAR(out[i], wanted[i], bound.relative * bound.scale[d])
          << config.exec.isa << " " << DTypeName(config.dtype) << ", H " << config.num_heads
          << ", D " << config.head_dim << ", window " << window << ", row " << row << ", d " << d;
    }
  }
}

TEST(Attention, IsWithinItsBoundOfTheReference) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const Geometry& g : kGeometries) {
      const AttentionConfig config{g.num_heads, g.num_kv_heads,
                                   g.head_dim,  dtype,
                                   0,           {.isa = IsaName(isa), .num_threads = 2}};
      ExpectNearReference(config, 37, 37);
      ASSERT_FALSE(HasFatalFailure());
      ExpectNearReference(config, 520, 2);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST(Attention, WindowsAndSoftCapsAreWithinTheirBoundOfTheReference) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const Geometry& g : {Geometry{9, 3, 64}, {8, 1, 16}, {4, 2, 18}}) {
      AttentionConfig config{g.num_heads, g.num_kv_heads,
                             g.head_dim,  dtype,
                             0,           {.isa = IsaName(isa), .num_threads = 2}};
      for (const int64_t window : {1, 5, 100, 512, 10000}) {
        config.windows = {0, window};
        config.soft_cap = window == 5 ? 0.0f : 1.5f;
        ExpectNearReference(config, 37, 37);
        ASSERT_FALSE(HasFatalFailure());
        ExpectNearReference(config, 640, 30);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

// Scores far apart, far beyond what exp can hold: the softmax must be one-hot, not NaN.
TEST(Attention, LargeScoresDoNotOverflow) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    const AttentionConfig config{2, 1, 16, dtype, 1, {.isa = IsaName(isa), .num_threads = 1}};
    RandomSequence data(config, 40, 3);
    for (float& k : data.k) k *= 100;
    for (float& q : data.q) q *= 10;
    auto cache = MakeTestCache(config, 16, 64);
    const SequenceId sequence = cache->CreateSequence();
    AppendTokens(*cache, sequence, data, 0, 40);
    const AttentionQuery query{cache->View(sequence).value(), 40};
    std::vector<float> out(data.q.size());
    auto attention = Attention::Create(config).value();
    ASSERT_TRUE(attention->Run(kTestLayer, {&query, 1}, DenseF32(data.q.data(), {40, 2, 16}),
                               DenseF32(out.data(), {40, 2, 16})));
    const auto wanted = AttentionRef(config, kTestLayer, {&query, 1}, data.q);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_TRUE(std::isfinite(out[i]));
    for (size_t i = 0; i < 32; ++i) ASSERT_NEAR(out[i], wanted[i], 1e-6);  // sees one position
  }
}

// What an empty slot would give if it were read: the check that makes the NaN fill worth its name.
TEST(Attention, ANaNThatIsReadShows) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const bool in_key : {true, false}) {
      const AttentionConfig config{2, 1, 16, dtype, 0, {.isa = IsaName(isa), .num_threads = 1}};
      RandomSequence data(config, 40, 5);
      (in_key ? data.k : data.v)[20 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();
      auto cache = MakeTestCache(config, 16, 64);
      const SequenceId sequence = cache->CreateSequence();
      AppendTokens(*cache, sequence, data, 0, 40);
      const AttentionQuery query{cache->View(sequence).value(), 1};
      std::vector<float> out(32);
      auto attention = Attention::Create(config).value();
      ASSERT_TRUE(attention->Run(kTestLayer, {&query, 1}, DenseF32(data.q.data(), {1, 2, 16}),
                                 DenseF32(out.data(), {1, 2, 16})));
      EXPECT_TRUE(std::any_of(out.begin(), out.end(), [](float x) { return std::isnan(x); }))
          << IsaName(isa) << " " << DTypeName(dtype);
    }
  }
}

TEST(Attention, RefusesWhatCannotBe) {
  const auto code = [](AttentionConfig config) {
    const auto attention = Attention::Create(config);
    return attention ? ErrorCode::kInternal : attention.error().code;
  };
  const AttentionConfig good{8, 2, 64, DType::kBF16, 0, {.isa = "scalar", .num_threads = 1}};
  EXPECT_EQ(code(good), ErrorCode::kInternal);
  AttentionConfig bad = good;
  bad.num_kv_heads = 3;
  EXPECT_EQ(code(bad), ErrorCode::kInvalidArgument);
  bad = good;
  bad.head_dim = 258;
  EXPECT_EQ(code(bad), ErrorCode::kUnsupported);
  bad.head_dim = 63;
  EXPECT_EQ(code(bad), ErrorCode::kUnsupported);
  bad = good;
  bad.exec.isa = "mmx";
  EXPECT_EQ(code(bad), ErrorCode::kInvalidArgument);
  bad = good;
  bad.windows = {4, -1};
  EXPECT_EQ(code(bad), ErrorCode::kInvalidArgument);
  for (const float cap :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    bad = good;
    bad.soft_cap = cap;
    EXPECT_EQ(code(bad), ErrorCode::kInvalidArgument) << cap;
  }
}

TEST(Attention, RunHoldsShapesAndViewsToTheConfig) {
  const AttentionConfig config{2, 1, 16, DType::kF32, 0, {.num_threads = 1}};
  const RandomSequence data(config, 4, 1);
  auto cache = MakeTestCache(config, 16, 64);
  const SequenceId sequence = cache->CreateSequence();
  AppendTokens(*cache, sequence, data, 0, 4);
  auto attention = Attention::Create(config).value();
  std::vector<float> out(2 * 16, 7.0f);
  const TensorView q = DenseF32(data.q.data(), {1, 2, 16});
  const MutableTensorView o = DenseF32(out.data(), {1, 2, 16});
  AttentionQuery query{cache->View(sequence).value(), 1};
  EXPECT_TRUE(attention->Run(kTestLayer, {&query, 1}, q, o).has_value());
  std::fill(out.begin(), out.end(), 7.0f);
  EXPECT_FALSE(attention->Run(kTestLayers, {&query, 1}, q, o).has_value());
  EXPECT_FALSE(attention->Run(0, {&query, 1}, DenseF32(data.q.data(), {1, 1, 16}), o).has_value());
  query.num_tokens = 5;
  EXPECT_FALSE(attention->Run(0, {&query, 1}, q, o).has_value());
  query.num_tokens = 1;
  query.kv.layout.dtype = DType::kF16;
  EXPECT_FALSE(attention->Run(0, {&query, 1}, q, o).has_value());
  for (float x : out) EXPECT_EQ(x, 7.0f);
}

TEST(Attention, RunHoldsLayersAndViewsToTheWindows) {
  AttentionConfig config{2, 1, 16, DType::kF32, 0, {.num_threads = 1}};
  config.windows = {3};
  const RandomSequence data(config, 6, 1);
  auto cache = MakeTestCache(config, 16, 64);
  const SequenceId sequence = cache->CreateSequence();
  AppendTokens(*cache, sequence, data, 0, 6);
  auto attention = Attention::Create(config).value();
  std::vector<float> out(2 * 2 * 16);
  const TensorView q = DenseF32(data.q.data(), {2, 2, 16});
  const MutableTensorView o = DenseF32(out.data(), {2, 2, 16});
  AttentionQuery query{cache->View(sequence).value(), 2};
  EXPECT_FALSE(attention->Run(1, {&query, 1}, q, o).has_value());  // of no known window
  for (query.kv.begin = 0; query.kv.begin <= 4; ++query.kv.begin) {
    // Tokens 4 and 5: the first one sees positions 2 to 4.
    EXPECT_EQ(attention->Run(0, {&query, 1}, q, o).has_value(), query.kv.begin <= 2);
  }
}

}  // namespace
}  // namespace kvick
