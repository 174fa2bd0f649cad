// The ways in which a request ends before it is done.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/batcher.h"
#include "engine/engine_testing.h"

namespace kvick {
namespace {

using testing::Alone;
using testing::OpenedRandomLlama;
using testing::Request;
using testing::SmallLlama;
using testing::WatchedBatcher;

class EndingTest : public ::testing::Test {
 protected:
  // A request that is cancelled has a beginning of what it gets alone.
  void ExpectBeginning(const GenerateResult& result, GenerateRequest request) {
    ASSERT_LE(std::ssize(result.tokens), request.max_new_tokens);
    request.max_new_tokens = std::ssize(result.tokens);
    if (request.max_new_tokens == 0) return;
    EXPECT_EQ(result.tokens, alone_.Run(request, result.sample_idx).tokens);
  }

  const OpenedRandomLlama opened_{SmallLlama()};
  Alone alone_{*opened_.model};
};

TEST_F(EndingTest, ACancelEndsARequestWhereverItIs) {
  const GenerateRequest first = Request(30, 1, 10), second = Request(40, 2, 10);
  const auto wanted = alone_.Run(first).tokens;
  // After so many steps the second one waits, is in its prompt, decodes.
  for (const int64_t max_sequences : {1, 2}) {
    for (int num_steps = 0; num_steps < 18; ++num_steps) {
      WatchedBatcher batcher(*opened_.model, {.max_sequences = max_sequences, .batch_tokens = 8});
      const RequestId a = batcher.Add(first);
      const RequestId b = batcher.Add(second);
      for (int i = 0; i < num_steps; ++i) batcher.Step();
      const bool had_ended = batcher.has_result(b);
      batcher.batcher().Cancel(std::array{b});
      batcher.batcher().Cancel(std::array{b});
      batcher.Step();
      ASSERT_TRUE(batcher.has_result(b));
      if (!had_ended) {
        EXPECT_EQ(batcher.result(b).finish_reason, FinishReason::kCancelled);
      }
      batcher.batcher().Cancel(std::array{b});
      batcher.RunToEnd();
      ExpectBeginning(batcher.result(b), second);
      EXPECT_EQ(batcher.result(a).tokens, wanted);
    }
  }
}

TEST_F(EndingTest, ACancelOfNobodyChangesNothing) {
  WatchedBatcher batcher(*opened_.model, {});
  batcher.batcher().Cancel(std::array{RequestId{}});
  batcher.batcher().Cancel(std::array{RequestId{17}});
  batcher.batcher().CancelAll();
  batcher.Step();
  EXPECT_EQ(batcher.stats().num_steps, 0);
  const RequestId id = batcher.Add(Request(5, 1, 4));
  batcher.batcher().Cancel(std::array{RequestId{17}});
  batcher.RunToEnd();
  EXPECT_EQ(batcher.result(id).finish_reason, FinishReason::kLength);
}

TEST_F(EndingTest, ACancelEndsAllSamples) {
  GenerateRequest request = Request(20, 1, 10);
  request.num_samples = 4;
  request.sampling = {.temperature = 1, .seed = 3};
  for (const int64_t max_sequences : {1, 2, 8}) {
    for (int num_steps = 0; num_steps < 8; ++num_steps) {
      WatchedBatcher batcher(*opened_.model, {.max_sequences = max_sequences, .batch_tokens = 8});
      const RequestId id = batcher.Add(request);
      for (int i = 0; i < num_steps; ++i) batcher.Step();
      batcher.batcher().Cancel(std::array{id});
      batcher.RunToEnd(1);
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(batcher.result(id, i).finish_reason, FinishReason::kCancelled);
        ExpectBeginning(batcher.result(id, i), request);
      }
    }
  }
}

TEST_F(EndingTest, ADeadlineEndsARequestWhereverItIs) {
  WatchedBatcher batcher(*opened_.model, {.max_sequences = 2});
  GenerateRequest late = Request(20, 1, 400), in_time = Request(20, 2, 5);
  late.num_samples = 3;  // the third one waits
  late.deadline = Clock::now() + std::chrono::milliseconds(5);
  in_time.deadline = Clock::now() + std::chrono::hours(1);
  GenerateRequest past = in_time;
  past.deadline = Clock::now();
  const RequestId ends = batcher.Add(late), stays = batcher.Add(in_time),
                  is_past = batcher.Add(past);
  batcher.RunToEnd();
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batcher.result(ends, i).finish_reason, FinishReason::kDeadline);
    ExpectBeginning(batcher.result(ends, i), late);
  }
  EXPECT_EQ(batcher.result(stays).finish_reason, FinishReason::kLength);
  EXPECT_EQ(batcher.result(is_past).finish_reason, FinishReason::kDeadline);
  EXPECT_TRUE(batcher.result(is_past).tokens.empty());
}

// A callback says no: all samples end, and hear no more.
TEST_F(EndingTest, ARequestThatWantsNoMoreHearsNoMore) {
  GenerateRequest request = Request(20, 1, 30);
  request.num_samples = 4;
  request.sampling = {.temperature = 1, .seed = 3};
  for (const int64_t max_sequences : {1, 2, 8}) {
    for (const int64_t most : {1, 2, 4, 5, 9}) {
      WatchedBatcher batcher(*opened_.model, {.max_sequences = max_sequences});
      int64_t num_heard = 0;
      RequestCallbacks callbacks;
      callbacks.on_token = [&](const TokenEvent&) { return ++num_heard < most; };
      const RequestId id = batcher.Add(request, callbacks);
      batcher.RunToEnd();
      EXPECT_EQ(num_heard, most);
      int64_t num_tokens = 0;
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(batcher.result(id, i).finish_reason, FinishReason::kCancelled);
        ExpectBeginning(batcher.result(id, i), request);
        num_tokens += std::ssize(batcher.result(id, i).tokens);
      }
      EXPECT_EQ(num_tokens, num_heard);
    }
  }
}

// A no with the token that is the last in any case comes too late for this sample, not for others.
TEST_F(EndingTest, ANoWithTheLastTokenLeavesTheReasonAsItIs) {
  for (const int64_t max_new_tokens : {1, 4}) {
    GenerateRequest request = Request(20, 1, max_new_tokens);
    WatchedBatcher batcher(*opened_.model, {.max_sequences = 4});
    int64_t num_heard = 0;
    RequestCallbacks callbacks;
    callbacks.on_token = [&](const TokenEvent&) { return ++num_heard < max_new_tokens; };
    const RequestId alone = batcher.Add(request, callbacks);
    batcher.RunToEnd();
    EXPECT_EQ(batcher.result(alone).finish_reason, FinishReason::kLength);
    request.num_samples = 3;
    callbacks.on_token = [&](const TokenEvent& event) { return event.sample_idx != 0; };
    const RequestId id = batcher.Add(request, callbacks);
    batcher.RunToEnd();
    const FinishReason of_first =
        max_new_tokens == 1 ? FinishReason::kLength : FinishReason::kCancelled;
    EXPECT_EQ(batcher.result(id, 0).finish_reason, of_first);
    EXPECT_EQ(batcher.result(id, 1).finish_reason, FinishReason::kCancelled);
    EXPECT_EQ(batcher.result(id, 2).finish_reason, FinishReason::kCancelled);
  }
}

TEST_F(EndingTest, ANoInAFullContextLeavesTheReasonAsItIs) {
  WatchedBatcher batcher(*opened_.model, {.context_tokens = 24});
  int64_t num_heard = 0;
  RequestCallbacks callbacks;
  callbacks.on_token = [&](const TokenEvent&) { return ++num_heard < 5; };
  const RequestId id = batcher.Add(Request(20, 1, 30), callbacks);
  batcher.RunToEnd();
  EXPECT_EQ(batcher.result(id).finish_reason, FinishReason::kLength);
  EXPECT_TRUE(batcher.result(id).context_is_full);
}

TEST_F(EndingTest, ARequestForNoTokensEndsWithoutAPass) {
  WatchedBatcher batcher(*opened_.model, {});
  GenerateRequest request = Request(20, 1, 0);
  request.num_samples = 3;
  const RequestId id = batcher.Add(request);
  batcher.RunToEnd(1);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batcher.result(id, i).finish_reason, FinishReason::kLength);
  }
  EXPECT_EQ(batcher.stats().prompt_tokens, 0);
}

// In bytes: what is shown, and when.
TEST_F(EndingTest, AStopTextEndsARequestBeforeIt) {
  const testing::OpenedByteLevelLlama opened;
  const GenerateRequest request = Request(9, 4, 24);
  const GenerateResult whole = Alone(*opened.model).Run(request);
  ASSERT_GT(whole.text.size(), 12u);
  size_t begin = whole.text.size() / 2;
  while ((whole.text[begin] & 0xC0) == 0x80) ++begin;  // at a character
  GenerateRequest stopping = request;
  stopping.stop = {"no such text", whole.text.substr(begin, 4)};
  const size_t first = whole.text.find(stopping.stop[1]);
  WatchedBatcher batcher(*opened.model, {});
  std::string streamed;
  RequestCallbacks callbacks;
  callbacks.on_token = [&](const TokenEvent& event) {
    streamed += event.text;
    return true;
  };
  const RequestId id = batcher.Add(stopping, callbacks);
  batcher.RunToEnd();
  EXPECT_EQ(batcher.result(id).finish_reason, FinishReason::kStop);
  EXPECT_EQ(batcher.result(id).text, whole.text.substr(0, first));
  EXPECT_EQ(streamed, batcher.result(id).text);
  EXPECT_LT(batcher.result(id).tokens.size(), whole.tokens.size());
}

TEST_F(EndingTest, ANoWithTheTokenOfAStopStringLeavesTheReasonAsItIs) {
  const testing::OpenedByteLevelLlama opened;
  GenerateRequest request = Request(9, 4, 24);
  const GenerateResult whole = Alone(*opened.model).Run(request);
  request.stop = {whole.text.substr(whole.text.size() / 2)};
  WatchedBatcher batcher(*opened.model, {});
  const RequestId all = batcher.Add(request);
  batcher.RunToEnd();
  ASSERT_EQ(batcher.result(all).finish_reason, FinishReason::kStop);
  int64_t num_heard = 0;
  RequestCallbacks callbacks;
  callbacks.on_token = [&](const TokenEvent&) {
    return ++num_heard < std::ssize(batcher.result(all).tokens);
  };
  const RequestId id = batcher.Add(request, callbacks);
  batcher.RunToEnd();
  EXPECT_EQ(batcher.result(id).finish_reason, FinishReason::kStop);
}

// What the callbacks of one request were told, by sample.
struct Streamed {
  struct Sample {
    std::string text;
    std::vector<int32_t> tokens;
    bool has_ended = false;
  };
  std::vector<Sample> samples;

  void Add(const TokenEvent& event) {
    Sample& sample = samples[static_cast<size_t>(event.sample_idx)];
    EXPECT_FALSE(sample.has_ended);
    if (event.token) {
      sample.tokens.push_back(*event.token);
    } else {
      EXPECT_FALSE(event.text.empty());
      sample.has_ended = true;  // nothing follows on an event without a token
    }
    sample.text += event.text;
  }
};

// A byte-level model that says little but the bytes of "ab\u00e9" and their merges, and then ends.
struct OpenedStutterer {
  static constexpr int32_t kEos = 262;
  testing::TempFolder folder;
  std::unique_ptr<Model> model;

  OpenedStutterer() {
    testing::RandomLlama geometry = SmallLlama();
    geometry.vocab_size = 264;
    testing::GgufSpec spec = testing::RandomGguf(geometry);
    testing::SetByteLevelTokenizer(spec);
    spec.SetU32("tokenizer.ggml.eos_token_id", kEos);
    testing::WriteFile(folder / "m.gguf", spec.Build());
    model = Model::Open(folder / "m.gguf").value();
  }

  GenerateRequest Draw(std::mt19937& random) const {
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    GenerateRequest request = Request(draw(1, 9), static_cast<uint32_t>(draw(0, 5)), draw(1, 24));
    request.num_samples = draw(1, 3);
    request.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(draw(0, 1000))};
    for (const int32_t token : {0x61, 0x62, 0xC3, 0xA9, 257, 260}) {
      request.sampling.logit_bias.push_back({token, 12});
    }
    request.sampling.logit_bias.push_back({kEos, static_cast<float>(draw(0, 10))});
    const std::vector<std::string> stops = {"ab", "aab", "b\u00e9a", "\u00e9\u00e9", "aaaa", "bz"};
    for (int64_t i = draw(0, 3); i > 0; --i) {
      request.stop.push_back(stops[static_cast<size_t>(draw(0, std::ssize(stops) - 1))]);
    }
    return request;
  }
};

// Stop strings, ends by length, by a token, by the context, by each kind of cancellation: what was
// streamed is the text of the result.
TEST_F(EndingTest, TheStreamedTextsAreTheTextHoweverItEnds) {
  const OpenedStutterer opened;
  std::mt19937 random(11);
  std::map<FinishReason, int> reasons;
  int num_held_back = 0;
  for (int round = 0; round < 400; ++round) {
    const int64_t context_tokens = random() % 2 == 0 ? 14 : 64;
    WatchedBatcher batcher(*opened.model, {.max_sequences = 1 + static_cast<int64_t>(random() % 3),
                                           .context_tokens = context_tokens});
    GenerateRequest request = opened.Draw(random);
    const uint32_t way = random() % 4;
    const auto num_events = static_cast<int64_t>(1 + random() % 20);
    if (way == 0 && random() % 2 == 0)
      request.deadline = Clock::now() + std::chrono::milliseconds(1);
    Streamed streamed;
    streamed.samples.resize(static_cast<size_t>(request.num_samples));
    int64_t num_heard = 0;
    RequestCallbacks callbacks;
    callbacks.on_token = [&](const TokenEvent& event) {
      streamed.Add(event);
      return ++num_heard != num_events || way != 1;
    };
    const RequestId id = batcher.Add(request, callbacks);
    for (int64_t step = 0; batcher.batcher().has_work(); ++step) {
      if (way == 2 && step == num_events) batcher.batcher().Cancel(std::array{id});
      batcher.Step();
    }
    for (int64_t i = 0; i < request.num_samples; ++i) {
      const GenerateResult& result = batcher.result(id, i);
      const Streamed::Sample& sample = streamed.samples[static_cast<size_t>(i)];
      ASSERT_EQ(sample.text, result.text);
      ASSERT_EQ(sample.tokens, result.tokens);
      ++reasons[result.finish_reason];
      num_held_back += sample.has_ended ? 1 : 0;
    }
  }
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled}) {
    EXPECT_GT(reasons[reason], 50) << FinishReasonName(reason);
  }
  EXPECT_GT(num_held_back, 50);
}

TEST_F(EndingTest, WithoutATokenizerATextIsItsIds) {
  WatchedBatcher batcher(*opened_.model, {});
  const RequestId id = batcher.Add(Request(5, 1, 3));
  batcher.RunToEnd();
  std::string ids;
  for (const int32_t token : batcher.result(id).tokens) ids += std::to_string(token) + ' ';
  EXPECT_EQ(batcher.result(id).text, ids);
  GenerateRequest stopping = Request(5, 1, 3);
  stopping.stop = {"1"};
  EXPECT_EQ(batcher.batcher().Check(stopping).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EndingTest, BadRequestsAreRefused) {
  const testing::OpenedByteLevelLlama opened;
  WatchedBatcher batcher(*opened.model, {});
  GenerateRequest empty_stop = Request(5, 1, 3), no_samples = empty_stop, many = empty_stop;
  empty_stop.stop = {"a", ""};
  no_samples.num_samples = 0;
  many.num_samples = (1 << 16) + 1;
  for (const GenerateRequest& bad : {empty_stop, no_samples, many}) {
    EXPECT_EQ(batcher.batcher().Check(bad).error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kvick
