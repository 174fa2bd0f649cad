#ifndef KVICK_ENGINE_H_
#define KVICK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// How the next token is chosen. The order is top_k, top_p, min_p, temperature, as in llama.cpp.
struct SamplingOptions {
  double temperature = 0;  ///< 0: the most likely token, of equals the lowest id
  int64_t top_k = 0;       ///< keep the k most likely; 0: all
  double top_p = 1;        ///< keep the fewest that hold this probability; (0, 1]
  double min_p = 0;        ///< keep those at least this likely, against the best; [0, 1]
  uint64_t seed = 0;       ///< of this request alone: who else is in the batch changes nothing
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  ///< at least one token
  int64_t max_new_tokens = 128;
  SamplingOptions sampling;
  bool ignore_end = false;  ///< go on after a token that ends a text
};

enum class FinishReason {
  kStop,       ///< a token that ends a text; it is not part of `tokens`
  kLength,     ///< max_new_tokens, or the context is full
  kCancelled,  ///< the callback said so
};

std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", "cancelled"

struct GenerateResult {
  std::vector<int32_t> tokens;  ///< the new ones
  FinishReason finish_reason = FinishReason::kLength;
  bool context_is_full = false;  ///< why kLength came before max_new_tokens
};

enum class CacheUse {
  kCached,
  kRecompute,  ///< the whole text anew for each token, without the cache's code: for comparison
};

struct EngineOptions {
  int64_t max_sequences = 1;        ///< requests side by side; others wait
  int64_t context_tokens = 0;       ///< a sequence's most; 0: the model's, see Engine::Create
  int64_t block_tokens = 16;        ///< of the paged cache; 0: contiguous, one block a request
  int64_t chunk_tokens = 512;       ///< of a prompt in one pass
  std::optional<DType> kv_dtype{};  ///< nullopt: the weights' own, bf16 where they are quantized
  CacheUse cache_use = CacheUse::kCached;
  std::string_view isa = "auto";
  int num_threads = 0;  ///< 0: the cores that the process may use
};

// What the engine tells while it works. Any may be empty.
struct EngineCallbacks {
  std::function<bool(int64_t request_idx, int32_t token)> on_token;  ///< false cancels that request
  std::function<void(int64_t request_idx)> on_finish;  ///< no more tokens of that request
  std::function<void(int64_t num_done, int64_t num_total)> on_prompt;  ///< prompt tokens taken in
};

// Time and work of all passes of Generate so far. One that takes in any prompt counts as prompt.
struct EngineStats {
  int64_t prompt_tokens = 0;
  int64_t prompt_us = 0;
  int64_t decode_tokens = 0;
  int64_t decode_us = 0;
  KvUsage peak;  ///< when the most was reserved
};

// Generates text for many requests at once: prompts in chunks and decode steps share passes.
//
// Threads  one Generate at a time
class Engine {
 public:
  // With context_tokens = 0 the context is the model's, or less: so much that the caches of
  // max_sequences, or without a cache the activations of a pass, take half of the available memory.
  // Such a cache is backed as it is written to; that of a given context up front.
  // `model` must outlive the engine.
  // Errors  invalid_argument, unsupported: options that cannot be;
  //         exhausted: not that much memory; the message says what would fit
  static Result<std::unique_ptr<Engine>> Create(const Model& model, const EngineOptions& options);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Runs all requests to their ends. Results stand in the order of the requests.
  // Errors  invalid_argument: an empty prompt, one longer than the context, sampling options or
  //         tokens out of range: nothing is run
  Result<std::vector<GenerateResult>> Generate(std::span<const GenerateRequest> requests,
                                               const EngineCallbacks& callbacks = {});

  // Logits of every position of one text, [tokens.size(), vocab_size] f32; with kRecompute each
  // position by its own pass over its whole prefix.
  Status Logits(std::span<const int32_t> tokens, std::span<float> logits,
                const EngineCallbacks& callbacks = {});

  int64_t context_tokens() const;
  // Whether memory, not the model, set the context.
  bool context_is_capped() const;
  // Null with CacheUse::kRecompute.
  const KvCache* cache() const;
  const ModelRunner& runner() const;
  const EngineStats& stats() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_H_
