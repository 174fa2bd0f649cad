#include "engine/batcher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_testing.h"

namespace kvick {
namespace {

using testing::Alone;
using testing::kSmallTokenBytes;
using testing::kVocab;
using testing::OpenedRandomLlama;
using testing::RandomTokens;
using testing::Request;
using testing::SmallLlama;
using testing::WatchedBatcher;

class BatcherTest : public ::testing::Test {
 protected:
  void ExpectAsAlone(const WatchedBatcher& batcher, RequestId id, const GenerateRequest& request) {
    for (int64_t i = 0; i < request.num_samples; ++i) {
      ASSERT_TRUE(batcher.has_result(id, i));
      EXPECT_EQ(batcher.result(id, i).tokens, alone_.Run(request, i).tokens) << "sample " << i;
    }
  }

  const OpenedRandomLlama opened_{SmallLlama()};
  const Model& model_ = *opened_.model;
  Alone alone_{model_};
};

std::vector<int32_t> Joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The smallest pool holds exactly the largest request.
TEST_F(BatcherTest, InAnyPoolEachRequestGetsWhatItGetsAlone) {
  std::vector<GenerateRequest> requests;
  for (uint32_t i = 0; i < 10; ++i) {
    requests.push_back(Request(3 + 7 * (i % 4), i % 6, 6 + 5 * (i % 5)));
    requests.back().sampling = {.temperature = i % 2 * 1.2, .seed = i};
  }
  requests[4] = Request(24, 4, 41);  // 64 slots: its last token needs none
  std::vector<std::vector<int32_t>> wanted;
  for (const GenerateRequest& request : requests) wanted.push_back(alone_.Run(request).tokens);
  int64_t num_preemptions = 0;
  for (const PrefixReuse reuse : {PrefixReuse::kOn, PrefixReuse::kOff}) {
    for (const int64_t block_tokens : {1, 4, 16, 64}) {
      for (const int64_t num_tokens : {64, 80, 128, 192}) {
        WatchedBatcher batcher(model_, {.max_sequences = 6,
                                        .context_tokens = 64,
                                        .block_tokens = block_tokens,
                                        .cache_bytes = num_tokens * kSmallTokenBytes,
                                        .batch_tokens = 24,
                                        .prefix_reuse = reuse,
                                        .fill = KvFill::kNan});
        std::vector<RequestId> ids;
        for (const GenerateRequest& request : requests) ids.push_back(batcher.Add(request));
        batcher.RunToEnd(2000);
        ASSERT_FALSE(HasFailure()) << block_tokens << ", " << num_tokens;
        for (size_t i = 0; i < ids.size(); ++i) {
          EXPECT_EQ(batcher.result(ids[i]).tokens, wanted[i]) << i;
          EXPECT_NE(batcher.result(ids[i]).finish_reason, FinishReason::kFailed)
              << batcher.result(ids[i]).error->message;
        }
        num_preemptions += batcher.stats().num_preemptions;
      }
    }
  }
  EXPECT_GT(num_preemptions, 20);
}

// What is found ends inside a block, and there is no block to copy it to.
TEST_F(BatcherTest, ARequestThatFillsThePoolFitsAfterOneThatBeganTheSame) {
  const auto begin = RandomTokens(22, kVocab, 1);
  for (const int64_t block_tokens : {1, 4, 16, 32}) {
    WatchedBatcher batcher(
        model_,
        {.context_tokens = 32, .block_tokens = block_tokens, .cache_bytes = 32 * kSmallTokenBytes});
    GenerateRequest request = Request(1, 1, 11);
    request.prompt = begin;
    for (const int32_t last : {begin.back(), 1, 2}) {
      request.prompt.back() = last;
      const RequestId id = batcher.Add(request);
      batcher.RunToEnd(100);
      EXPECT_FALSE(batcher.result(id).error) << batcher.result(id).error->message;
      ExpectAsAlone(batcher, id, request);
    }
  }
}

TEST_F(BatcherTest, WhatCanNeverFitIsRefusedAtOnce) {
  WatchedBatcher batcher(model_, {.max_sequences = 2,
                                  .context_tokens = 200,
                                  .block_tokens = 4,
                                  .cache_bytes = 10 * 4 * kSmallTokenBytes});
  for (const GenerateRequest& fits : {Request(40, 1, 1), Request(1, 1, 40), Request(30, 1, 11)}) {
    EXPECT_TRUE(batcher.batcher().Check(fits).has_value());
    const RequestId id = batcher.Add(fits);
    batcher.RunToEnd();
    ExpectAsAlone(batcher, id, fits);
  }
  for (const GenerateRequest& large : {Request(41, 1, 1), Request(1, 1, 41), Request(30, 1, 12)}) {
    const Status refused = batcher.batcher().Check(large);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
    EXPECT_NE(refused.error().message.find("need 11 blocks"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().message.find("a cache of 10"), std::string::npos);
  }
  EXPECT_EQ(batcher.batcher().Check(Request(41, 1, 0)).has_value(), false);
}

TEST_F(BatcherTest, ACacheOfWholeContextsRunsAsManyTextsAsItHolds) {
  for (const int64_t block_tokens : {0, 16, 32}) {
    WatchedBatcher batcher(
        model_, {.max_sequences = 6, .context_tokens = 32, .block_tokens = block_tokens});
    for (uint32_t i = 0; i < 6; ++i) batcher.Add(Request(20, i, 12));
    batcher.Step();
    EXPECT_EQ(batcher.stats().num_running, 6) << block_tokens;
    batcher.RunToEnd();
    EXPECT_EQ(batcher.stats().num_preemptions, 0);
  }
}

TEST_F(BatcherTest, ALongPromptDelaysNoDecode) {
  WatchedBatcher batcher(model_, {.max_sequences = 3, .batch_tokens = 12});
  std::vector<int64_t> num_events(3);
  const auto count = [&](size_t i) {
    RequestCallbacks callbacks;
    callbacks.on_token = [&num_events, i](const TokenEvent&) { return ++num_events[i] > 0; };
    return callbacks;
  };
  const auto decoding = Request(3, 1, 60);
  const RequestId a = batcher.Add(decoding, count(0));
  batcher.Step();
  const RequestId b = batcher.Add(Request(150, 2, 4), count(1));
  const RequestId c = batcher.Add(Request(10, 3, 4), count(2));
  for (int64_t step = 2; !batcher.has_result(b); ++step) {
    batcher.Step();
    ASSERT_EQ(num_events[0], step);
    if (num_events[1] == 0) {
      EXPECT_EQ(batcher.num_tokens_of_step(), 12);
    }
  }
  batcher.RunToEnd();
  ExpectAsAlone(batcher, a, decoding);
  ExpectAsAlone(batcher, c, Request(10, 3, 4));
}

TEST_F(BatcherTest, AnEqualBeginningIsComputedOnce) {
  const auto common = RandomTokens(200, kVocab, 1);
  for (const int64_t batch_tokens : {64, 512, 4096}) {
    for (const PrefixReuse reuse : {PrefixReuse::kOn, PrefixReuse::kOff}) {
      WatchedBatcher batcher(model_, {.max_sequences = 10,
                                      .context_tokens = 256,
                                      .batch_tokens = batch_tokens,
                                      .prefix_reuse = reuse});
      std::vector<GenerateRequest> requests;
      std::vector<RequestId> ids;
      for (uint32_t i = 0; i < 10; ++i) {
        requests.push_back(Request(1, 1, 1));
        requests[i].prompt = Joined(common, RandomTokens(9, kVocab, 100 + i));
        ids.push_back(batcher.Add(requests[i]));
      }
      batcher.RunToEnd();
      const int64_t computed = batcher.stats().prompt_tokens;
      if (reuse == PrefixReuse::kOff) {
        EXPECT_EQ(computed, 10 * 209);
      } else {  // whole blocks are shared: 192 of the 200
        EXPECT_LE(computed, 209 + 9 * (9 + 8));
      }
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(batcher.result(ids[i]).num_reused_tokens > 0, i > 0 && reuse == PrefixReuse::kOn);
        ExpectAsAlone(batcher, ids[i], requests[i]);
      }
    }
  }
}

TEST_F(BatcherTest, ASampleIsTheRequestAloneWithItsSeed) {
  GenerateRequest request = Request(21, 1, 9);
  request.num_samples = 5;
  request.sampling = {.temperature = 1.5, .seed = 40};
  for (const PrefixReuse reuse : {PrefixReuse::kOn, PrefixReuse::kOff}) {
    for (const int64_t max_sequences : {1, 3, 8}) {
      for (const int64_t num_blocks : {8, 10, 40}) {
        WatchedBatcher batcher(model_, {.max_sequences = max_sequences,
                                        .context_tokens = 32,
                                        .block_tokens = 4,
                                        .cache_bytes = num_blocks * 4 * kSmallTokenBytes,
                                        .prefix_reuse = reuse,
                                        .fill = KvFill::kNan});
        const RequestId first = batcher.Add(request);
        const RequestId second = batcher.Add(request);
        batcher.RunToEnd(1000);
        ASSERT_FALSE(HasFailure());
        ExpectAsAlone(batcher, first, request);
        ExpectAsAlone(batcher, second, request);
        if (max_sequences == 8 && num_blocks == 40 && reuse == PrefixReuse::kOn) {
          EXPECT_LE(batcher.stats().prompt_tokens, 21 + 5 + 10);  // the prompt was computed once
        }
      }
    }
  }
}

TEST_F(BatcherTest, TenantsFindOnlyWhatIsTheirs) {
  WatchedBatcher batcher(model_, {.max_sequences = 2});
  const auto reused = [&](const std::string& cache_salt) {
    GenerateRequest request = Request(50, 1, 3);
    request.cache_salt = cache_salt;
    const RequestId id = batcher.Add(request);
    batcher.RunToEnd();
    ExpectAsAlone(batcher, id, request);
    return batcher.result(id).num_reused_tokens;
  };
  EXPECT_EQ(reused(""), 0);
  EXPECT_EQ(reused("a"), 0);
  EXPECT_EQ(reused("b"), 0);
  EXPECT_EQ(reused("a"), 49);  // all but the last, whose logits are wanted
  EXPECT_EQ(reused(""), 49);
  EXPECT_EQ(reused("ab"), 0);
  batcher.batcher().ClearPrefixCache();
  EXPECT_EQ(reused("a"), 0);
}

// Side by side neither waits for the other's prompt.
TEST_F(BatcherTest, TenantsDoNotWaitForEachOther) {
  WatchedBatcher batcher(model_, {.max_sequences = 2});
  GenerateRequest request = Request(50, 1, 3);
  const RequestId a = batcher.Add(request);
  request.cache_salt = "b";
  const RequestId b = batcher.Add(request);
  batcher.Step();
  EXPECT_EQ(batcher.num_tokens_of_step(), 100);
  batcher.RunToEnd();
  EXPECT_EQ(batcher.result(a).tokens, batcher.result(b).tokens);
}

// The only token that a request allows has a NaN logit: it fails, and the others are as they were.
TEST_F(BatcherTest, ARequestThatFailsAloneLeavesTheOthersAsTheyWere) {
  constexpr int32_t kNanToken = 7;
  testing::TempFolder folder;
  testing::GgufSpec spec = testing::RandomGguf(SmallLlama());
  std::string& rows = spec.FindTensor("output.weight").data;
  const size_t row_bytes = rows.size() / kVocab;
  rows.replace(kNanToken * row_bytes, row_bytes, row_bytes, '\xff');
  testing::WriteFile(folder / "nan.gguf", spec.Build());
  const auto model = Model::Open(folder / "nan.gguf").value();
  Alone alone(*model);
  const auto expect_as_alone = [&](const WatchedBatcher& batcher, RequestId id,
                                   const GenerateRequest& request) {
    for (int64_t i = 0; i < request.num_samples; ++i) {
      EXPECT_EQ(batcher.result(id, i).tokens, alone.Run(request, i).tokens);
    }
  };
  GenerateRequest good = Request(9, 2, 5);
  good.num_samples = 3;
  GenerateRequest failing = good;
  for (int32_t i = 0; i < kVocab; ++i) {
    if (i != kNanToken) failing.sampling.logit_bias.push_back({i, -INFINITY});
  }
  for (const int64_t max_sequences : {1, 2, 6}) {
    WatchedBatcher batcher(*model, {.max_sequences = max_sequences, .batch_tokens = 8});
    const RequestId before = batcher.Add(Request(12, 1, 8));
    const RequestId failed = batcher.Add(failing);
    const RequestId after = batcher.Add(Request(12, 3, 8));
    batcher.RunToEnd();
    for (int64_t i = 0; i < 3; ++i) {
      const GenerateResult& result = batcher.result(failed, i);
      EXPECT_EQ(result.finish_reason, FinishReason::kFailed);
      EXPECT_EQ(result.error->code, ErrorCode::kCorrupt);
      EXPECT_TRUE(result.tokens.empty());
    }
    expect_as_alone(batcher, before, Request(12, 1, 8));
    expect_as_alone(batcher, after, Request(12, 3, 8));
    // What it left in the cache is good.
    const RequestId again = batcher.Add(good);
    batcher.RunToEnd();
    expect_as_alone(batcher, again, good);
  }
}

// Thousands of short requests: neither sequences nor what is known of them pile up.
TEST_F(BatcherTest, ThousandsOfRequestsLeaveNothingBehind) {
  WatchedBatcher batcher(model_, {.max_sequences = 8,
                                  .context_tokens = 32,
                                  .block_tokens = 4,
                                  .cache_bytes = 40 * 4 * kSmallTokenBytes,
                                  .batch_tokens = 64});
  for (uint32_t i = 0; i < 3000; ++i) {
    GenerateRequest request = Request(1 + i % 9, i % 500, 1 + i % 3);
    request.cache_salt = std::to_string(i % 7);
    batcher.Add(std::move(request));
    if (i % 4 == 0) batcher.Step();
    ASSERT_FALSE(HasFailure());
  }
  batcher.RunToEnd();
  const EngineStats stats = batcher.stats();
  EXPECT_EQ(stats.num_finished, 3000);
  EXPECT_LE(stats.prefix.num_indexed_blocks, 40);
  batcher.batcher().ClearPrefixCache();
  EXPECT_EQ(batcher.stats().prefix.num_indexed_blocks, 0);
  EXPECT_EQ(batcher.batcher().cache().num_free_blocks(), 40);
}

}  // namespace
}  // namespace kvick
