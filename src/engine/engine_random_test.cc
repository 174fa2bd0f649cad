// A long random walk over requests: small pools, shared beginnings, tenants, samples, cancels.
// After every step the cache is whole; at the end each text is what its request gets alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_testing.h"

namespace kvick {
namespace {

using testing::kSmallTokenBytes;
using testing::kVocab;
using testing::RandomTokens;
using testing::WatchedBatcher;

constexpr int kNumRounds = 60;
constexpr int kNumActions = 60;
constexpr int64_t kContext = 48;

struct Submitted {
  RequestId id;
  GenerateRequest request;
  bool may_be_cancelled = false;
};

class Walk {
 public:
  Walk(const Model& model, uint32_t seed)
      : random_(seed), options_(DrawOptions()), batcher_(model, options_) {}

  void Run() {
    for (int i = 0; i < kNumActions && !::testing::Test::HasFailure(); ++i) Act();
    batcher_.RunToEnd();
  }

  void Check(testing::Alone& alone) const {
    for (const Submitted& submitted : submitted_) {
      for (int64_t i = 0; i < submitted.request.num_samples; ++i) {
        ASSERT_TRUE(batcher_.has_result(submitted.id, i));
        const GenerateResult& result = batcher_.result(submitted.id, i);
        GenerateRequest request = submitted.request;
        if (submitted.may_be_cancelled && result.finish_reason == FinishReason::kCancelled) {
          request.max_new_tokens = std::ssize(result.tokens);
          ASSERT_EQ(result.tokens, alone.Run(request, i).tokens) << "sample " << i;
          continue;
        }
        const GenerateResult wanted = alone.Run(request, i);
        ASSERT_EQ(result.finish_reason, wanted.finish_reason)
            << (result.error ? result.error->message : "");
        ASSERT_EQ(result.context_is_full, wanted.context_is_full);
        ASSERT_EQ(result.tokens, wanted.tokens) << "sample " << i;
      }
    }
  }

  int64_t num_preemptions() const { return batcher_.stats().num_preemptions; }
  int64_t num_hits() const { return batcher_.stats().prefix.tokens_hit; }
  std::string Description() const {
    return "block_tokens " + std::to_string(options_.block_tokens) + ", cache_bytes " +
           std::to_string(options_.cache_bytes) + ", max_sequences " +
           std::to_string(options_.max_sequences) + ", batch_tokens " +
           std::to_string(options_.batch_tokens);
  }

 private:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  EngineOptions DrawOptions() {
    EngineOptions options;
    options.max_sequences = Draw(1, 7);
    options.context_tokens = kContext;
    options.block_tokens = std::vector<int64_t>{0, 1, 4, 16}[Draw(0, 3)];
    options.cache_bytes = Draw(1, 4) == 1 ? kContext : Draw(kContext, 4 * kContext);
    options.cache_bytes *= kSmallTokenBytes;
    options.batch_tokens = Draw(1, 40);
    options.prefix_reuse = Draw(0, 3) == 0 ? PrefixReuse::kOff : PrefixReuse::kOn;
    options.fill = KvFill::kNan;
    return options;
  }

  void Act() {
    const int64_t action = Draw(0, 19);
    if (action < 6) {
      Submit();
    } else if (action == 6 && !submitted_.empty()) {
      Submitted& cancelled = submitted_[Draw(0, std::ssize(submitted_) - 1)];
      cancelled.may_be_cancelled = true;
      batcher_.batcher().Cancel(std::array{cancelled.id});
    } else if (action == 7 && Draw(0, 9) == 0) {
      batcher_.batcher().ClearPrefixCache();
    } else if (action == 8 && Draw(0, 9) == 0) {
      for (Submitted& cancelled : submitted_) cancelled.may_be_cancelled = true;
      batcher_.batcher().CancelAll();
    } else {
      batcher_.Step();
    }
  }

  // Few beginnings and few different tokens, so that texts meet.
  GenerateRequest DrawRequest() {
    GenerateRequest request;
    request.prompt = RandomTokens(kContext, kVocab, static_cast<uint32_t>(Draw(0, 2)));
    request.prompt.resize(Draw(0, 30));
    for (int64_t num_more = Draw(1, 8); num_more > 0; --num_more) {
      request.prompt.push_back(static_cast<int32_t>(Draw(0, 1)));
    }
    request.max_new_tokens = Draw(0, 9) == 0 ? 100 : Draw(0, 16);
    request.num_samples = Draw(0, 3) == 0 ? Draw(2, 5) : 1;
    request.cache_salt = Draw(0, 3) == 0 ? "other" : "";
    request.sampling.seed = static_cast<uint64_t>(Draw(0, 3));
    if (Draw(0, 1) == 0) request.sampling.temperature = 0.8;
    if (Draw(0, 3) == 0) request.sampling.repetition_penalty = 1.3;
    if (Draw(0, 3) == 0) request.sampling.logit_bias = {{1, 2}, {5, -INFINITY}};
    return request;
  }

  void Submit() {
    Submitted submitted{{}, DrawRequest()};
    RequestCallbacks callbacks;
    if (Draw(0, 7) == 0) {
      submitted.may_be_cancelled = true;
      callbacks.on_token = [left = Draw(1, 10)](const TokenEvent&) mutable { return --left > 0; };
    }
    submitted.id = batcher_.Add(submitted.request, std::move(callbacks));
    submitted_.push_back(std::move(submitted));
  }

  std::mt19937 random_;
  EngineOptions options_;
  WatchedBatcher batcher_;
  std::vector<Submitted> submitted_;
};

TEST(EngineRandom, WhateverHappensEachTextIsAsAlone) {
  const testing::OpenedRandomLlama opened(testing::SmallLlama());
  testing::Alone alone(*opened.model, kContext);
  int64_t num_preemptions = 0, num_hits = 0;
  for (uint32_t seed = 1; seed <= kNumRounds; ++seed) {
    Walk walk(*opened.model, seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + walk.Description());
    walk.Run();
    if (HasFailure()) return;
    walk.Check(alone);
    if (HasFailure()) return;
    num_preemptions += walk.num_preemptions();
    num_hits += walk.num_hits();
  }
  EXPECT_GT(num_preemptions, kNumRounds / 2);
  EXPECT_GT(num_hits, 10 * kNumRounds);
}

}  // namespace
}  // namespace kvick
