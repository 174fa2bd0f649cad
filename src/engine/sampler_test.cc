#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kvick {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How often each id comes in `num_draws` draws.
std::vector<double> Frequencies(const SamplingOptions& options, const std::vector<float>& logits,
                                int num_draws) {
  Sampler sampler(options);
  std::vector<double> counts(logits.size(), 0.0);
  for (int i = 0; i < num_draws; ++i) counts[sampler.Sample(logits).value()] += 1.0 / num_draws;
  return counts;
}

TEST(ArgMax, TakesTheLowestIdOfEquals) {
  EXPECT_EQ(ArgMax(std::vector<float>{1, 3, 3, 2}).value(), 1);
  EXPECT_EQ(ArgMax(std::vector<float>{-5}).value(), 0);
}

TEST(ArgMax, IgnoresNaNAndFailsWhereNothingCanBeChosen) {
  EXPECT_EQ(ArgMax(std::vector<float>{kNan, -1, kNan, 0}).value(), 3);
  EXPECT_EQ(ArgMax(std::vector<float>{1, kInfinity, kInfinity}).value(), 1);
  const Error all_nan = ArgMax(std::vector<float>{-kInfinity, kNan, kNan}).error();
  EXPECT_EQ(all_nan.code, ErrorCode::kCorrupt);
  EXPECT_NE(all_nan.message.find("NaN for 2 of 3 logits (the first is token 1)"), std::string::npos)
      << all_nan.message;
  EXPECT_EQ(ArgMax(std::vector<float>{-kInfinity}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ArgMax({}).error().code, ErrorCode::kInvalidArgument);
}

// Every way to choose: as if the tokens with NaN were forbidden, and said.
TEST(Sampler, ChoosesAsIfNaNWereForbidden) {
  const std::vector<float> logits = {1, 4, kNan, 3, kNan, 2};
  std::vector<float> forbidden = logits;
  forbidden[2] = forbidden[4] = -kInfinity;
  for (SamplingOptions options :
       {SamplingOptions{}, SamplingOptions{.temperature = 2, .seed = 5},
        SamplingOptions{.temperature = 2, .top_k = 3, .seed = 5},
        SamplingOptions{.temperature = 1, .top_p = 0.9, .min_p = 0.01, .seed = 7},
        SamplingOptions{.temperature = 1, .repetition_penalty = 1.3, .logit_bias = {{2, 1}}}}) {
    Sampler with_nan(options), without(options);
    std::vector<int32_t> token_ids;
    for (int i = 0; i < 50; ++i) {
      const int32_t token = with_nan.Sample(i < 3 ? forbidden : logits, token_ids).value();
      ASSERT_EQ(token, without.Sample(forbidden, token_ids).value());
      token_ids.push_back(token);
    }
    EXPECT_FALSE(without.nan_logits().has_value());
    ASSERT_TRUE(with_nan.nan_logits().has_value());
    EXPECT_EQ(with_nan.nan_logits()->count, 2 * 47);
    EXPECT_EQ(with_nan.nan_logits()->first_token, 2);
    EXPECT_EQ(with_nan.nan_logits()->first_index, 3);
  }
}

TEST(Sampler, PlusInfinityComesBeforeEverythingElse) {
  const std::vector<float> logits = {5, kInfinity, 9, kInfinity};
  const auto drawn = Frequencies({.temperature = 1, .seed = 3}, logits, 4000);
  EXPECT_NEAR(drawn[1], 0.5, 0.05);
  EXPECT_NEAR(drawn[3], 0.5, 0.05);
  const auto best = Frequencies({.temperature = 1, .top_k = 1}, logits, 100);
  EXPECT_NEAR(best[1], 1, 1e-9);
  SamplingOptions forbidding{.temperature = 1};
  forbidding.logit_bias = {{1, -kInfinity}, {3, -kInfinity}};
  const auto others = Frequencies(forbidding, logits, 2000);
  EXPECT_EQ(others[1] + others[3], 0);
  EXPECT_GT(others[2], 0.9);
}

TEST(Sampler, TopKMinusOneIsAllAndTopPZeroIsTheBest) {
  const std::vector<float> logits = {0, 0.1f, 0.2f, 0.3f};
  const auto all = Frequencies({.temperature = 1, .seed = 3}, logits, 1000);
  EXPECT_EQ(Frequencies({.temperature = 1, .top_k = -1, .seed = 3}, logits, 1000), all);
  EXPECT_EQ(Frequencies({.temperature = 1, .top_k = 0, .seed = 3}, logits, 1000), all);
  const auto best = Frequencies({.temperature = 1, .top_p = 0, .seed = 3}, logits, 100);
  EXPECT_NEAR(best[3], 1, 1e-9);
  for (const SamplingOptions& good : {SamplingOptions{.top_k = -1}, SamplingOptions{.top_p = 0}}) {
    EXPECT_TRUE(CheckSampling(good, 4).has_value());
  }
}

TEST(Sampler, ABiasThatForbidsEveryTokenIsRefused) {
  SamplingOptions options;
  for (const int32_t token : {0, 1, 1, 2}) options.logit_bias.push_back({token, -kInfinity});
  EXPECT_TRUE(CheckSampling(options, 4).has_value());  // token 3 is left
  options.logit_bias.push_back({3, 1});
  EXPECT_TRUE(CheckSampling(options, 4).has_value());
  options.logit_bias.push_back({3, -kInfinity});
  const Status forbidden = CheckSampling(options, 4);
  ASSERT_FALSE(forbidden.has_value());
  EXPECT_EQ(forbidden.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(forbidden.error().message.find("all 4"), std::string::npos);
}

TEST(Sampler, TheLimitOfABiasIsQuotedAsItIs) {
  SamplingOptions options;
  options.logit_bias = {{0, static_cast<float>(kMaxLogitBias)},
                        {1, -static_cast<float>(kMaxLogitBias)}};
  EXPECT_TRUE(CheckSampling(options, 4).has_value());
  options.logit_bias = {{2, 2e30f}};
  EXPECT_EQ(CheckSampling(options, 4).error().message,
            "sampling: logit_bias of token 2: expected -1e+30 to 1e+30 or -inf, got 2e+30");
}

TEST(Sampler, FollowsTheSoftmaxOfLogitsByTemperature) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  const auto warm = Frequencies({.temperature = 1, .seed = 3}, logits, 20000);
  EXPECT_NEAR(warm[0], 1.0 / 8, 0.01);
  EXPECT_NEAR(warm[1], 2.0 / 8, 0.01);
  EXPECT_NEAR(warm[2], 5.0 / 8, 0.01);
  const auto cold = Frequencies({.temperature = 0.5, .seed = 3}, logits, 20000);
  EXPECT_NEAR(cold[2], 25.0 / 30, 0.01);
}

TEST(Sampler, KeepsTheKMostLikely) {
  const auto counts = Frequencies({.temperature = 5, .top_k = 2}, {1, 4, 3, 2}, 2000);
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_GT(counts[2], 0);
}

TEST(Sampler, KeepsTheFewestThatHoldTopP) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  const auto counts = Frequencies({.temperature = 1, .top_p = 0.7}, logits, 2000);
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2] + counts[3], 0);
  EXPECT_NEAR(Frequencies({.temperature = 1, .top_p = 1e-9}, logits, 100)[0], 1, 1e-9);
}

TEST(Sampler, KeepsThoseNearTheBest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f)};
  const auto counts = Frequencies({.temperature = 1, .min_p = 0.5}, logits, 2000);
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2], 0);
}

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  const std::vector<float> logits(50, 0.0f);
  Sampler a({.temperature = 1, .seed = 9}), b({.temperature = 1, .seed = 9}),
      c({.temperature = 1, .seed = 10});
  std::vector<int32_t> of_a, of_b, of_c;
  for (int i = 0; i < 20; ++i) {
    of_a.push_back(a.Sample(logits).value());
    of_b.push_back(b.Sample(logits).value());
    of_c.push_back(c.Sample(logits).value());
  }
  EXPECT_EQ(of_a, of_b);
  EXPECT_NE(of_a, of_c);
}

// 1,000 logits with equals among them, made of the bits of the generator alone.
std::vector<float> RecordedLogits() {
  std::mt19937_64 random(7);
  std::vector<float> logits;
  for (int i = 0; i < 1000; ++i) {
    logits.push_back(static_cast<float>(random() % 1024) / 64 - 8);
  }
  return logits;
}

// Neither exp nor the order of the candidates, nor the random numbers, are those of a library:
// these tokens come on every machine.
TEST(Sampler, DrawsTheRecordedTokens) {
  struct Recorded {
    SamplingOptions options;
    std::vector<int32_t> token_ids;
  };
  const std::vector<Recorded> recorded = {
      {{}, {110, 110, 110, 110, 110, 110, 110, 110, 110, 110, 110, 110}},
      {{.temperature = 1, .seed = 1}, {926, 244, 308, 136, 720, 177, 302, 205, 144, 815, 724, 903}},
      {{.temperature = 0.7, .seed = 2},
       {170, 758, 426, 321, 182, 902, 259, 205, 136, 903, 787, 103}},
      {{.temperature = 3, .top_k = 50, .seed = 3},
       {790, 350, 644, 336, 790, 336, 8, 634, 502, 902, 205, 644}},
      {{.temperature = 1.5, .top_p = 0.9, .seed = 4},
       {858, 673, 266, 205, 144, 863, 170, 925, 987, 962, 41, 673}},
      {{.temperature = 2, .top_k = 200, .top_p = 0.95, .min_p = 0.001, .seed = 5},
       {405, 925, 769, 471, 350, 926, 259, 691, 843, 769, 863, 403}},
      {{.temperature = 1, .repetition_penalty = 1.3, .logit_bias = {{5, 6}, {9, 7}}, .seed = 6},
       {758, 302, 858, 583, 336, 926, 796, 722, 9, 74, 110, 978}},
  };
  const std::vector<float> logits = RecordedLogits();
  for (const Recorded& expected : recorded) {
    Sampler sampler(expected.options);
    std::vector<int32_t> token_ids;
    for (int i = 0; i < 12; ++i) token_ids.push_back(sampler.Sample(logits, token_ids).value());
    EXPECT_EQ(token_ids, expected.token_ids) << "seed " << expected.options.seed;
  }
}

// The weights of 300 equal candidates are summed in the order of ids, whatever sorts them: with
// top_p the first of them stay.
TEST(Sampler, OrdersEqualLogitsById) {
  std::vector<float> logits(300, 1.0f);
  for (const int64_t top_k : {int64_t{0}, int64_t{200}}) {
    const double num_candidates = top_k == 0 ? 300 : static_cast<double>(top_k);
    const SamplingOptions options{
        .temperature = 1, .top_k = top_k, .top_p = 19.5 / num_candidates, .seed = 3};
    const auto drawn = Frequencies(options, logits, 2000);
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_EQ(drawn[i] > 0, i < 20) << i;
  }
}

TEST(Sampler, PenalizesTokensOfTheText) {
  Sampler sampler({.repetition_penalty = 2});
  const std::vector<float> logits = {-3, 4, 2.5f, -1};
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{}).value(), 1);
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{1}).value(), 2);           // 4 / 2 < 2.5
  EXPECT_EQ(sampler.Sample(logits, std::vector<int32_t>{1, 2, 2, 1}).value(), 1);  // 2 > 1.25
  // -1 * 2 is less than -1.5: a penalty makes no token more likely.
  Sampler negative({.repetition_penalty = 2});
  EXPECT_EQ(negative.Sample(std::vector<float>{-1.5f, -1}, std::vector<int32_t>{1}).value(), 0);
  // Below 1 it is a preference.
  Sampler preference({.repetition_penalty = 0.5});
  EXPECT_EQ(preference.Sample(std::vector<float>{3, 2}, std::vector<int32_t>{1}).value(), 1);
}

TEST(Sampler, AddsTheBiasBeforeThePenalty) {
  Sampler sampler({.repetition_penalty = 2, .logit_bias = {{0, 3}, {0, 1}}});
  EXPECT_EQ(sampler.Sample(std::vector<float>{-2, 1.5f}).value(), 0);  // -2 + 3 + 1 = 2
  EXPECT_EQ(sampler.Sample(std::vector<float>{-2, 1.5f}, std::vector<int32_t>{0}).value(), 1);
}

// The forbidden token would be the best one, or the last that a draw falls back to.
TEST(Sampler, NeverTakesAForbiddenToken) {
  const std::vector<float> logits = {9, 1, 2, -9};
  const LogitBias best{0, -kInfinity}, least{3, -kInfinity};
  for (const SamplingOptions& base :
       {SamplingOptions{}, SamplingOptions{.temperature = 1}, SamplingOptions{.temperature = 1e6},
        SamplingOptions{.temperature = 1e6, .top_k = 4},
        SamplingOptions{.temperature = 1e6, .top_p = 0.999999},
        SamplingOptions{.temperature = 1e6, .repetition_penalty = 3}}) {
    SamplingOptions options = base;
    options.logit_bias = {best, least};
    const auto counts = Frequencies(options, logits, 5000);
    EXPECT_EQ(counts[0] + counts[3], 0);
    EXPECT_GT(counts[2], 0);
  }
}

TEST(Sampler, FailsWhereEveryTokenIsForbidden) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature, .logit_bias = {{0, -kInfinity}, {1, -kInfinity}}});
    EXPECT_EQ(sampler.Sample(std::vector<float>{1, 2}).error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(CheckSampling({}, 100).has_value());
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = kNan},
        SamplingOptions{.top_k = -2}, SamplingOptions{.top_p = -1}, SamplingOptions{.top_p = 1.5},
        SamplingOptions{.top_p = kNan}, SamplingOptions{.min_p = -0.1}, SamplingOptions{.min_p = 2},
        SamplingOptions{.repetition_penalty = 0}, SamplingOptions{.repetition_penalty = -1},
        SamplingOptions{.repetition_penalty = kNan},
        SamplingOptions{.repetition_penalty = kInfinity}, SamplingOptions{.logit_bias = {{-1, 0}}},
        SamplingOptions{.logit_bias = {{100, 0}}}, SamplingOptions{.logit_bias = {{0, kInfinity}}},
        SamplingOptions{.logit_bias = {{0, kNan}}}}) {
    EXPECT_EQ(CheckSampling(options, 100).error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kvick
