#include "kvick/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/random_llama_testing.h"

namespace kvick {
namespace {

using testing::OpenedRandomLlama;
using testing::RandomTokens;

constexpr int64_t kVocab = 100;

GenerateRequest Request(int64_t prompt_tokens, uint32_t seed, int64_t max_new_tokens) {
  GenerateRequest request;
  request.prompt = RandomTokens(prompt_tokens, kVocab, seed);
  request.max_new_tokens = max_new_tokens;
  return request;
}

std::vector<GenerateResult> RunAll(const Model& model, const EngineOptions& options,
                                   const std::vector<GenerateRequest>& requests) {
  auto engine = Engine::Create(model, options);
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
  auto results = (*engine)->Generate(requests);
  EXPECT_TRUE(results.has_value()) << (results ? "" : results.error().message);
  if ((*engine)->cache() != nullptr) {
    EXPECT_EQ((*engine)->cache()->num_sequences(), 0);
    EXPECT_EQ((*engine)->cache()->Usage().reserved_bytes, 0);
  }
  return *std::move(results);
}

TEST(Engine, GivesTheSameTokensHoweverItIsSetUp) {
  const OpenedRandomLlama opened({});
  const auto requests = std::vector{Request(50, 1, 20)};
  const auto wanted =
      RunAll(*opened.model, {.cache_use = CacheUse::kRecompute}, requests)[0].tokens;
  ASSERT_EQ(wanted.size(), 20u);
  for (const EngineOptions& options :
       {EngineOptions{}, EngineOptions{.block_tokens = 0}, EngineOptions{.block_tokens = 64},
        EngineOptions{.chunk_tokens = 1}, EngineOptions{.chunk_tokens = 7},
        EngineOptions{.num_threads = 1}}) {
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
    for (const int64_t chunk_tokens : {3, 512}) {
      const auto together = RunAll(
          *opened.model, {.max_sequences = max_sequences, .chunk_tokens = chunk_tokens}, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(together[i].tokens, RunAll(*opened.model, {}, {requests[i]})[0].tokens);
        EXPECT_EQ(static_cast<int64_t>(together[i].tokens.size()), requests[i].max_new_tokens);
      }
    }
  }
}

TEST(Engine, AFullContextStopsAndSaysSo) {
  const OpenedRandomLlama opened({});
  for (const CacheUse use : {CacheUse::kCached, CacheUse::kRecompute}) {
    const auto results =
        RunAll(*opened.model, {.context_tokens = 20, .cache_use = use}, {Request(15, 1, 100)});
    EXPECT_EQ(results[0].finish_reason, FinishReason::kLength);
    EXPECT_TRUE(results[0].context_is_full);
    EXPECT_EQ(results[0].tokens.size(), 6u);  // the last one needs no slot
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
  ignoring.ignore_end = true;
  EXPECT_EQ(RunAll(*ending, {}, {ignoring})[0].tokens, tokens);
}

TEST(Engine, CallbacksHearEveryTokenAndMayCancel) {
  const OpenedRandomLlama opened({});
  auto engine = Engine::Create(*opened.model, {.max_sequences = 2, .chunk_tokens = 4}).value();
  std::vector<std::vector<int32_t>> heard(2);
  std::vector<int64_t> finished, progress;
  EngineCallbacks callbacks;
  callbacks.on_token = [&](int64_t request_idx, int32_t token) {
    heard[request_idx].push_back(token);
    return !(request_idx == 0 && heard[0].size() == 3);
  };
  callbacks.on_finish = [&](int64_t request_idx) { finished.push_back(request_idx); };
  callbacks.on_prompt = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 30);
    progress.push_back(done);
  };
  const auto results =
      engine->Generate(std::vector{Request(10, 1, 50), Request(20, 2, 8)}, callbacks).value();
  EXPECT_EQ(results[0].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(results[1].finish_reason, FinishReason::kLength);
  EXPECT_EQ(heard[0], results[0].tokens);
  EXPECT_EQ(heard[1], results[1].tokens);
  EXPECT_EQ(heard[0].size(), 3u);
  EXPECT_EQ(finished, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_EQ(progress.back(), 30);
}

TEST(Engine, RequestsThatWaitAreNotCountedAsDone) {
  const OpenedRandomLlama opened({});
  auto engine = Engine::Create(*opened.model, {.max_sequences = 1}).value();
  std::vector<int64_t> progress;
  EngineCallbacks callbacks;
  callbacks.on_prompt = [&](int64_t done, int64_t) {
    if (progress.empty() || progress.back() != done) progress.push_back(done);
  };
  ASSERT_TRUE(engine->Generate(std::vector{Request(10, 1, 3), Request(20, 2, 3)}, callbacks));
  EXPECT_EQ(progress, (std::vector<int64_t>{10, 30}));
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
    EngineCallbacks callbacks;
    callbacks.on_token = [](int64_t, int32_t) -> bool { throw "a token of a refused batch"; };
    const auto results = engine->Generate(std::vector{Request(3, 1, 5), bad}, callbacks);
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(engine->Generate(std::vector{Request(20, 1, 1)}).has_value());
  EXPECT_TRUE(engine->Generate(std::vector{Request(3, 1, 0)}).value()[0].tokens.empty());
}

// Weights that are NaN: an error in the middle of a batch leaves the engine as it was.
TEST(Engine, AnErrorUnderWayLeavesNothingBehind) {
  testing::TempFolder folder;
  testing::GgufSpec spec = testing::RandomGguf({});
  std::string& norm = spec.FindTensor("output_norm.weight").data;
  norm.assign(norm.size(), '\xff');
  testing::WriteFile(folder / "m.gguf", spec.Build());
  auto model = Model::Open(folder / "m.gguf").value();
  auto engine = Engine::Create(*model, {.max_sequences = 2}).value();
  for (int i = 0; i < 3; ++i) {
    const auto results = engine->Generate(std::vector{Request(3, 1, 5), Request(9, 2, 5)});
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::kInternal);
    EXPECT_EQ(engine->cache()->num_sequences(), 0);
    EXPECT_EQ(engine->cache()->num_free_blocks(), engine->cache()->config().num_blocks);
    EXPECT_TRUE(engine->cache()->Verify().has_value());
  }
}

TEST(Engine, LogitsAreTheSameWithAndWithoutCache) {
  const OpenedRandomLlama opened({});
  const auto tokens = RandomTokens(40, kVocab, 8);
  std::vector<float> cached(40 * kVocab), recomputed(40 * kVocab);
  auto with = Engine::Create(*opened.model, {.chunk_tokens = 7}).value();
  ASSERT_TRUE(with->Logits(tokens, cached).has_value());
  ASSERT_TRUE(with->Logits(tokens, cached).has_value());  // again: nothing is left of the first
  auto without = Engine::Create(*opened.model, {.cache_use = CacheUse::kRecompute}).value();
  ASSERT_TRUE(without->Logits(tokens, recomputed).has_value());
  EXPECT_EQ(cached, recomputed);
  EXPECT_FALSE(with->Logits(tokens, std::span(cached).first(5)).has_value());
}

}  // namespace
}  // namespace kvick
