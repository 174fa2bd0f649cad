// The ways in which a request ends before it is done.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
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
