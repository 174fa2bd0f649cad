#include "kvick/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_testing.h"
#include "engine/recompute.h"
#include "engine/text_logits.h"

namespace kvick {
namespace {

using testing::kVocab;
using testing::OpenedRandomLlama;
using testing::RandomTokens;
using testing::Request;

std::vector<GenerateResult> RunAll(const Model& model, const EngineOptions& options,
                                   const std::vector<GenerateRequest>& requests) {
  auto engine = Engine::Create(model, options);
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
  auto results = (*engine)->Generate(requests);
  EXPECT_TRUE(results.has_value()) << (results ? "" : results.error().message);
  EXPECT_EQ((*engine)->stats().num_running, 0);
  EXPECT_EQ((*engine)->stats().usage.reserved_bytes, 0);
  return *std::move(results);
}

GenerateResult Recomputed(const Model& model, const GenerateRequest& request,
                          int64_t context_tokens = 0) {
  auto recomputer = Recomputer::Create(model, {.context_tokens = context_tokens}).value();
  return recomputer->Generate(request).value();
}

TEST(Engine, GivesTheSameTokensHoweverItIsSetUp) {
  const OpenedRandomLlama opened({});
  const auto requests = std::vector{Request(50, 1, 20)};
  const auto wanted = Recomputed(*opened.model, requests[0]).tokens;
  ASSERT_EQ(wanted.size(), 20u);
  for (const EngineOptions& options :
       {EngineOptions{}, EngineOptions{.block_tokens = 0}, EngineOptions{.block_tokens = 64},
        EngineOptions{.batch_tokens = 1}, EngineOptions{.batch_tokens = 7},
        EngineOptions{.exec = {.num_threads = 1}}}) {
    EXPECT_EQ(RunAll(*opened.model, options, requests)[0].tokens, wanted);
  }
}

// More requests than places, of other lengths, some sampled: each as if it were alone.
TEST(Engine, ABatchGivesEachRequestWhatItGetsAlone) {
  const OpenedRandomLlama opened({});
  std::vector<GenerateRequest> requests;
  for (uint32_t i = 0; i < 7; ++i) {
    requests.push_back(Request(1 + 13 * (i % 4), 10 + i, 5 + 6 * (i % 3)));
    requests.back().sampling = {.temperature = i % 2 * 1.5, .top_k = 20, .seed = i};
  }
  for (const int64_t max_sequences : {1, 3, 7}) {
    for (const int64_t batch_tokens : {3, 512}) {
      const auto together = RunAll(
          *opened.model, {.max_sequences = max_sequences, .batch_tokens = batch_tokens}, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(together[i].tokens, RunAll(*opened.model, {}, {requests[i]})[0].tokens);
        EXPECT_EQ(static_cast<int64_t>(together[i].tokens.size()), requests[i].max_new_tokens);
      }
    }
  }
}

TEST(Engine, AFullContextStopsAndSaysSo) {
  const OpenedRandomLlama opened({});
  const GenerateRequest request = Request(15, 1, 100);
  for (const GenerateResult& result : {RunAll(*opened.model, {.context_tokens = 20}, {request})[0],
                                       Recomputed(*opened.model, request, 20)}) {
    EXPECT_EQ(result.finish_reason, FinishReason::kLength);
    EXPECT_TRUE(result.context_is_full);
    EXPECT_EQ(result.tokens.size(), 6u);  // the last one needs no slot
  }
  const auto results = RunAll(*opened.model, {.context_tokens = 20}, {Request(15, 1, 6)});
  EXPECT_FALSE(results[0].context_is_full);
}

TEST(Engine, ATokenThatEndsATextEndsIt) {
  testing::TempFolder folder;
  testing::GgufSpec spec = testing::RandomGguf({});
  testing::WriteFile(folder / "m.gguf", spec.Build());
  auto model = Model::Open(folder / "m.gguf").value();
  const auto tokens = RunAll(*model, {}, {Request(9, 4, 30)})[0].tokens;
  const int32_t end = tokens[12];
  const auto first = std::find(tokens.begin(), tokens.end(), end);
  spec.SetU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(end));
  testing::WriteFile(folder / "e.gguf", spec.Build());
  auto ending = Model::Open(folder / "e.gguf").value();
  const auto stopped = RunAll(*ending, {}, {Request(9, 4, 30)})[0];
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(tokens.begin(), first));
  GenerateRequest ignoring = Request(9, 4, 30);
  ignoring.ignore_eos = true;
  EXPECT_EQ(RunAll(*ending, {}, {ignoring})[0].tokens, tokens);
}

TEST(Engine, CallbacksHearEveryTokenAndMayCancel) {
  const OpenedRandomLlama opened({});
  auto engine = Engine::Create(*opened.model, {.max_sequences = 2, .batch_tokens = 4}).value();
  std::vector<std::vector<int32_t>> streamed(2);
  std::vector<std::vector<int64_t>> progress(2);
  std::vector<size_t> finished;
  std::vector<RequestCallbacks> callbacks(2);
  for (size_t i = 0; i < 2; ++i) {
    callbacks[i].on_token = [&, i](const TokenEvent& event) {
      streamed[i].push_back(event.token.value());
      return !(i == 0 && streamed[0].size() == 3);
    };
    callbacks[i].on_finish = [&, i](const GenerateResult&) { finished.push_back(i); };
    callbacks[i].on_prompt = [&, i](int64_t done, int64_t total) {
      EXPECT_EQ(total, i == 0 ? 10 : 20);
      progress[i].push_back(done);
    };
  }
  const auto results =
      engine->Generate(std::vector{Request(10, 1, 50), Request(20, 2, 8)}, callbacks).value();
  EXPECT_EQ(results[0].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(results[1].finish_reason, FinishReason::kLength);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(streamed[i], results[i].tokens);
    EXPECT_TRUE(std::is_sorted(progress[i].begin(), progress[i].end()));
    EXPECT_EQ(progress[i].back(), i == 0 ? 10 : 20);
  }
  EXPECT_EQ(streamed[0].size(), 3u);
  EXPECT_EQ(finished, (std::vector<size_t>{0, 1}));
}

TEST(Engine, RefusesRequestsThatCannotBeAndRunsNone) {
  const OpenedRandomLlama opened({});
  auto engine = Engine::Create(*opened.model, {.context_tokens = 20}).value();
  GenerateRequest outside = Request(3, 1, 5);
  outside.prompt[1] = kVocab;
  GenerateRequest hot = Request(3, 1, 5);
  hot.sampling.top_p = 7;
  for (const GenerateRequest& bad :
       {Request(0, 1, 5), Request(21, 1, 5), Request(3, 1, -1), outside, hot}) {
    const auto results = engine->Generate(std::vector{Request(3, 1, 5), bad});
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(engine->stats().num_steps, 0);
  }
  EXPECT_TRUE(engine->Generate(std::vector{Request(20, 1, 1)}).has_value());
  EXPECT_TRUE(engine->Generate(std::vector{Request(3, 1, 0)}).value()[0].tokens.empty());
}

std::unique_ptr<Model> OpenSpec(const testing::TempFolder& folder, const testing::GgufSpec& spec) {
  testing::WriteFile(folder / "m.gguf", spec.Build());
  return Model::Open(folder / "m.gguf").value();
}

// All logits are NaN: each request fails by itself and says so; the engine goes on as before.
TEST(Engine, ARequestWithoutALogitToChooseFromFailsAlone) {
  testing::TempFolder folder;
  testing::GgufSpec spec = testing::RandomGguf({});
  std::string& norm = spec.FindTensor("output_norm.weight").data;
  norm.assign(norm.size(), '\xff');
  const auto model = OpenSpec(folder, spec);
  auto engine = Engine::Create(*model, {.max_sequences = 2}).value();
  GenerateRequest for_nothing = Request(3, 3, 0);
  for (const double temperature : {0.0, 1.0}) {
    GenerateRequest sampled = Request(9, 2, 5);
    sampled.sampling.temperature = temperature;
    const auto results = engine->Generate(std::vector{Request(3, 1, 5), for_nothing, sampled});
    ASSERT_TRUE(results.has_value()) << results.error().message;
    ASSERT_EQ(results->size(), 3u);
    EXPECT_EQ((*results)[1].finish_reason, FinishReason::kLength);
    for (const size_t i : {0, 2}) {
      const GenerateResult& failed = (*results)[i];
      EXPECT_EQ(failed.finish_reason, FinishReason::kFailed);
      ASSERT_TRUE(failed.error.has_value());
      EXPECT_EQ(failed.error->code, ErrorCode::kCorrupt);
      EXPECT_NE(failed.error->message.find("NaN for 100 of 100"), std::string::npos)
          << failed.error->message;
      EXPECT_EQ(failed.nan_logits->count, kVocab);
    }
    EXPECT_EQ(engine->stats().num_running, 0);
    EXPECT_EQ(engine->stats().usage.reserved_bytes, 0);
  }
}

// One row of the output matrix is NaN: the others are chosen as if its token were forbidden.
TEST(Engine, ATokenWhoseLogitIsNaNIsNeverChosen) {
  constexpr int32_t kToken = 42;
  testing::TempFolder folder, damaged_folder;
  testing::GgufSpec spec = testing::RandomGguf({});
  const auto model = OpenSpec(folder, spec);
  std::string& rows = spec.FindTensor("output.weight").data;
  const size_t row_bytes = rows.size() / kVocab;
  rows.replace(kToken * row_bytes, row_bytes, row_bytes, '\xff');
  const auto damaged = OpenSpec(damaged_folder, spec);
  for (const double temperature : {0.0, 1.5}) {
    GenerateRequest request = Request(9, 2, 30);
    request.sampling = {.temperature = temperature, .seed = 4};
    const GenerateResult got = RunAll(*damaged, {}, {request})[0];
    EXPECT_EQ(Recomputed(*damaged, request).tokens, got.tokens);
    request.sampling.logit_bias = {{kToken, -std::numeric_limits<float>::infinity()}};
    const GenerateResult forbidden = RunAll(*model, {}, {request})[0];
    EXPECT_EQ(got.tokens, forbidden.tokens);
    EXPECT_EQ(got.finish_reason, FinishReason::kLength);
    ASSERT_TRUE(got.nan_logits.has_value());
    EXPECT_EQ(got.nan_logits->count, 30);
    EXPECT_EQ(got.nan_logits->first_token, kToken);
    EXPECT_EQ(got.nan_logits->first_index, 0);
    EXPECT_FALSE(forbidden.nan_logits.has_value());
  }
}

TEST(TextLogits, AreTheSameWithAndWithoutCache) {
  const OpenedRandomLlama opened({});
  const auto tokens = RandomTokens(40, kVocab, 8);
  std::vector<float> cached(40 * kVocab), recomputed(40 * kVocab);
  auto with = TextLogits::Create(*opened.model, {.batch_tokens = 7}).value();
  ASSERT_TRUE(with->Logits(tokens, cached).has_value());
  ASSERT_TRUE(with->Logits(tokens, cached).has_value());  // again: nothing is left of the first
  auto without = Recomputer::Create(*opened.model, {}).value();
  ASSERT_TRUE(without->Logits(tokens, recomputed).has_value());
  EXPECT_EQ(cached, recomputed);
  std::vector<float> others(40 * kVocab + 1);
  for (const size_t size : {size_t{5}, others.size()}) {
    EXPECT_FALSE(with->Logits(tokens, std::span(others).first(size)).has_value());
    EXPECT_FALSE(without->Logits(tokens, std::span(others).first(size)).has_value());
  }
  EXPECT_FALSE(with->Logits({}, {}).has_value());
}

}  // namespace
}  // namespace kvick
