#ifndef KVICK_ENGINE_H_
#define KVICK_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// Added to a token's logit before all else.
struct LogitBias {
  int32_t token = 0;
  float bias = 0;  ///< up to 1e30 either way; minus infinity forbids the token
};

// How the next token is chosen. The order is logit_bias, repetition_penalty, top_k, top_p, min_p,
// temperature, as in llama.cpp.
struct SamplingOptions {
  double temperature = 0;  ///< 0: the most likely token, of equals the lowest id
  int64_t top_k = 0;       ///< keep the k most likely; 0: all
  double top_p = 1;        ///< keep the fewest that hold this probability; (0, 1]
  double min_p = 0;        ///< keep those at least this likely, against the best; [0, 1]
  double repetition_penalty =
      1;  ///< 0.01 to 100, of tokens in the text: logits / it, negative ones * it
  std::vector<LogitBias> logit_bias{};
  uint64_t seed = 0;  ///< of this request alone: who else is in the batch changes nothing
};

struct GenerateRequest {
  std::vector<int32_t> prompt;   ///< at least one token
  int64_t max_new_tokens = 128;  ///< 0: nothing is computed
  int64_t num_samples = 1;  ///< up to 65,536 texts; the prompt is computed once, seeds count up
  SamplingOptions sampling;
  std::vector<std::string> stop{};  ///< a text ends before the first of these; needs a tokenizer
  bool ignore_eos = false;          ///< go on after a token that ends a text
  // Prompts are compared, to be computed once, only among requests of one cache_salt: the time to
  // the first token tells nobody what others have asked.
  std::string cache_salt;
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< ends it wherever it is
};

enum class FinishReason {
  kStop,       ///< a token that ends a text, not part of `tokens`; or one of the stop string
  kLength,     ///< max_new_tokens, or the context is full
  kCancelled,  ///< Cancel, a callback, or the end of the engine
  kDeadline,
  kFailed,  ///< `error` says why
};

std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", "cancelled", ...

// One text. Times count from Submit.
struct GenerateResult {
  int64_t sample_idx = 0;       ///< 0 .. num_samples - 1
  std::vector<int32_t> tokens;  ///< the new ones, those of a stop string among them
  std::string text;             ///< theirs, as TextStream shows them, without the stop string
  FinishReason finish_reason = FinishReason::kLength;
  bool context_is_full = false;   ///< why kLength came before max_new_tokens
  std::optional<Error> error;     ///< with kFailed
  int64_t num_reused_tokens = 0;  ///< of the prompt: not computed for this text
  int64_t num_preemptions = 0;    ///< times it stepped aside for an older request
  int64_t first_token_us = 0;
  int64_t finished_us = 0;
};

struct TokenEvent {
  int64_t sample_idx = 0;
  int32_t token = 0;
  // What can be shown now: whole characters, and none that may yet turn out to begin a stop string.
  std::string_view text;
};

// What one request hears, all on the engine's thread: the engine waits meanwhile. Any may be empty.
// They must not throw; REQUIRES: they call neither Generate nor Shutdown, which wait.
struct RequestCallbacks {
  std::function<bool(const TokenEvent& event)> on_token;  ///< false cancels the request
  std::function<void(GenerateResult result)> on_finish;   ///< once a sample, always
  // Prompt tokens that are in the cache, of a sample that has not begun to answer.
  std::function<void(int64_t num_computed, int64_t num_total)> on_prompt;
};

enum class PrefixReuse {
  kOn,   ///< equal beginnings are stored and computed once
  kOff,  ///< every request computes all of its prompt
};

struct EngineOptions {
  int64_t max_sequences = 1;   ///< texts side by side; others wait
  int64_t context_tokens = 0;  ///< a text's most; 0: the model's, see Engine::Create
  int64_t block_tokens = 16;   ///< of the paged cache; 0: contiguous, one block a text
  int64_t cache_bytes = 0;     ///< of all blocks; 0: max_sequences whole contexts
  int64_t batch_tokens = 512;  ///< of all texts in one pass; max_sequences if that is more
  PrefixReuse prefix_reuse = PrefixReuse::kOn;
  std::optional<DType> kv_dtype{};  ///< nullopt: the weights' own, bf16 where they are quantized
  // nullopt: up front where context_tokens or cache_bytes is given, else on demand.
  std::optional<KvBacking> backing{};
  KvFill fill = KvFill::kAsMapped;  ///< for tests
  std::string_view isa = "auto";
  int num_threads = 0;  ///< 0: the cores that the process may use
};

// What the engine has done so far, and what it holds now.
struct EngineStats {
  // A pass that takes in any prompt counts as prompt.
  int64_t prompt_tokens = 0;
  int64_t prompt_us = 0;
  int64_t decode_tokens = 0;
  int64_t decode_us = 0;
  int64_t num_steps = 0;
  int64_t step_us = 0;  ///< forward passes and all that lies around them
  int64_t num_preemptions = 0;
  int64_t num_finished = 0;  ///< texts
  int64_t num_waiting = 0;   ///< texts, now
  int64_t num_running = 0;
  int64_t max_running = 0;
  KvUsage usage;
  KvUsage peak;  ///< when the most was reserved
  PrefixStats prefix;
};

// A request's name; 0 is none's.
enum class RequestId : uint64_t {};

enum class ShutdownMode {
  kDrain,  ///< what has been submitted runs to its end
  kAbort,  ///< and ends now
};

// Generates texts for many requests at once from one cache. Each step is one forward pass over the
// next token of every text that is under way, and prompts as far as the pass has room. Texts join
// and leave between steps; one that finds no blocks steps aside for older ones and goes on later.
//
// A text depends on its prompt, options and seed. Who else runs, whether its beginning was found in
// the cache, whether it was preempted: none of it changes a bit.
//
// Threads  one thread of the engine's own, asleep when there is nothing to do; methods may be
//          called from any
class Engine {
 public:
  // With context_tokens = 0 the context is the model's, or less: so much that the caches of
  // max_sequences take half of the available memory, or one text all of cache_bytes.
  // `model` must outlive the engine.
  // Errors  invalid_argument, unsupported: options that cannot be;
  //         exhausted: not that much memory; the message says what would fit
  static Result<std::unique_ptr<Engine>> Create(const Model& model, const EngineOptions& options);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // Shutdown(ShutdownMode::kAbort)

  // Puts a request in the queue, behind all others.
  // Errors  invalid_argument: an empty prompt, one longer than the context, sampling options or
  //         tokens out of range;
  //         exhausted: more blocks than there are, even alone; the message says how many;
  //         cancelled: the engine is shut down
  Result<RequestId> Submit(GenerateRequest request, RequestCallbacks callbacks = {});
  // Ends a request before its next step. One that has ended is none.
  void Cancel(RequestId request);
  // No more requests; returns when none is left.
  void Shutdown(ShutdownMode mode);

  // Submits all and waits for them. Results stand in the order of requests, then of samples.
  // Errors  as Submit: nothing is run;  that of the first text that failed
  Result<std::vector<GenerateResult>> Generate(std::span<const GenerateRequest> requests);
  // The same, heard while it runs: callbacks[i] are those of request i; on_finish's result is a
  // copy.
  Result<std::vector<GenerateResult>> Generate(std::span<const GenerateRequest> requests,
                                               std::span<const RequestCallbacks> callbacks);

  int64_t context_tokens() const;
  // Whether memory, not the model, set the context.
  bool context_is_capped() const;
  const KvConfig& cache_config() const;
  std::string_view isa() const;
  EngineStats stats() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_H_
