#ifndef KVICK_ENGINE_ENGINE_TESTING_H_
#define KVICK_ENGINE_ENGINE_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/batcher.h"
#include "engine/recompute.h"
#include "formats/tokenizer_testing.h"
#include "kvick/engine.h"
#include "model/random_llama_testing.h"

// What the tests of the engine share.
namespace kvick::testing {

inline constexpr int64_t kVocab = 100;

// As fast as a model can be.
inline RandomLlama SmallLlama() {
  return {.num_layers = 2,
          .hidden_size = 32,
          .intermediate_size = 32,
          .num_heads = 2,
          .num_kv_heads = 1,
          .vocab_size = kVocab};
}

// Bytes of the keys and values of one token of SmallLlama.
inline constexpr int64_t kSmallTokenBytes = 2 * 2 * 16 * 4;

inline GenerateRequest Request(int64_t prompt_tokens, uint32_t seed, int64_t max_new_tokens) {
  GenerateRequest request;
  request.prompt = RandomTokens(prompt_tokens, kVocab, seed);
  request.max_new_tokens = max_new_tokens;
  return request;
}

// Gives a model the vocabulary of SmallByteLevel: 264 tokens, of which 0 to 255 are the bytes.
inline void SetByteLevelTokenizer(GgufSpec& spec) {
  const TokenizerData data = SmallByteLevel();
  std::string types;
  for (const TokenType type : data.types) types += Packed(static_cast<int32_t>(type) + 1);
  std::vector<std::string> merges;
  for (const MergeRule& merge : data.merges) merges.push_back(merge.left + " " + merge.right);
  spec.SetString("tokenizer.ggml.model", "gpt2");
  spec.SetStrings("tokenizer.ggml.tokens", data.pieces);
  spec.Set("tokenizer.ggml.token_type", GgufType::kArray,
           PackedArray(GgufType::kI32, data.types.size(), types));
  spec.SetStrings("tokenizer.ggml.merges", merges);
}

struct OpenedByteLevelLlama {
  TempFolder folder;
  std::unique_ptr<Model> model;

  OpenedByteLevelLlama() {
    RandomLlama geometry = SmallLlama();
    geometry.vocab_size = 264;
    GgufSpec spec = RandomGguf(geometry);
    SetByteLevelTokenizer(spec);
    WriteFile(folder / "m.gguf", spec.Build());
    model = Model::Open(folder / "m.gguf").value();
  }
};

// What a request gets alone, without any cache.
class Alone {
 public:
  explicit Alone(const Model& model, int64_t context_tokens = 0)
      : recomputer_(Recomputer::Create(
                        model, {.context_tokens = context_tokens, .exec = {.num_threads = 1}})
                        .value()) {}

  GenerateResult Run(GenerateRequest request, int64_t sample_idx = 0) {
    request.sampling.seed += static_cast<uint64_t>(sample_idx);
    request.deadline.reset();
    return recomputer_->Generate(request).value();
  }

 private:
  std::unique_ptr<Recomputer> recomputer_;
};

// A batcher that is looked at after every step, and the results of its requests.
class WatchedBatcher {
 public:
  WatchedBatcher(const Model& model, EngineOptions options) : options_(options) {
    options.exec.num_threads = 1;
    auto batcher = Batcher::Create(model, options);
    EXPECT_TRUE(batcher.has_value()) << (batcher ? "" : batcher.error().message);
    batcher_ = *std::move(batcher);
  }

  RequestId Add(GenerateRequest request, RequestCallbacks callbacks = {}) {
    const RequestId id{++last_id_};
    const Status checked = batcher_->Check(request);
    EXPECT_TRUE(checked.has_value()) << (checked ? "" : checked.error().message);
    num_expected_ += request.num_samples;
    callbacks.on_finish = [this, id, also = callbacks.on_finish](GenerateResult result) {
      if (also) also(result);
      const int64_t sample_idx = result.sample_idx;
      EXPECT_TRUE(results_[id].emplace(sample_idx, std::move(result)).second);
      ++num_reported_;
    };
    batcher_->Add(id, std::move(request), std::move(callbacks), Clock::now());
    return id;
  }

  void Step() {
    const EngineStats before = batcher_->stats();
    batcher_->Step();
    const EngineStats after = batcher_->stats();
    num_tokens_of_step_ =
        after.prompt_tokens + after.decode_tokens - before.prompt_tokens - before.decode_tokens;
    EXPECT_LE(num_tokens_of_step_, BatchTokens(options_));
    EXPECT_LE(after.num_running, options_.max_sequences);
    CheckCache(after);
    batcher_->ReportEnds();
    EXPECT_EQ(after.num_finished, num_reported_);
    EXPECT_EQ(after.num_finished + after.num_running + after.num_waiting, num_expected_);
  }

  // REQUIRES: nothing that is under way needs more steps.
  void RunToEnd(int64_t most_steps = 10000) {
    for (int64_t i = 0; batcher_->has_work(); ++i) {
      ASSERT_LT(i, most_steps) << "there is no end to it";
      Step();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(batcher_->stats().usage.reserved_bytes, 0);
    EXPECT_EQ(num_reported_, num_expected_);
  }

  Batcher& batcher() { return *batcher_; }
  EngineStats stats() const { return batcher_->stats(); }
  int64_t num_tokens_of_step() const { return num_tokens_of_step_; }
  bool has_result(RequestId id, int64_t sample_idx = 0) const {
    return results_.contains(id) && results_.at(id).contains(sample_idx);
  }
  const GenerateResult& result(RequestId id, int64_t sample_idx = 0) const {
    return results_.at(id).at(sample_idx);
  }

 private:
  void CheckCache(const EngineStats& stats) const {
    const KvCache& cache = batcher_->cache();
    const Status verified = cache.Verify();
    EXPECT_TRUE(verified.has_value()) << (verified ? "" : verified.error().message);
    const int64_t num_held = stats.usage.reserved_bytes / cache.layout().block_stride;
    EXPECT_EQ(cache.num_free_blocks() + cache.num_evictable_blocks() + num_held,
              cache.config().num_blocks);
    EXPECT_EQ(cache.num_sequences(), stats.num_running);
    EXPECT_LE(stats.prefix.num_indexed_blocks, cache.config().num_blocks);
  }

  EngineOptions options_;
  std::unique_ptr<Batcher> batcher_;
  uint64_t last_id_ = 0;
  int64_t num_expected_ = 0, num_reported_ = 0, num_tokens_of_step_ = 0;
  std::map<RequestId, std::map<int64_t, GenerateResult>> results_;
};

}  // namespace kvick::testing

#endif  // KVICK_ENGINE_ENGINE_TESTING_H_
