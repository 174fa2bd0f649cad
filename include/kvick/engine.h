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

#include "kvick/exec.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// The largest bias of a logit, either way: sums of logits and biases stay finite.
inline constexpr double kMaxLogitBias = 1e30;

// Added to the logit of a token before everything else.
struct LogitBias {
  int32_t token = 0;
  float bias = 0;  ///< -kMaxLogitBias to kMaxLogitBias; minus infinity forbids the token
};

// How the next token is chosen from the logits. Applied in the order logit_bias,
// repetition_penalty, top_k, top_p, min_p, temperature, as in llama.cpp.
//
// A token whose logit is NaN is never chosen, the others as if it were forbidden: see NanLogits. A
// logit of plus infinity is chosen before all finite ones, with equal chances among its equals.
struct SamplingOptions {
  double temperature = 0;  ///< 0: greedy, the largest logit; of equals the lowest id
  int64_t top_k = 0;       ///< keep the k most likely tokens; 0 or -1: all
  double top_p = 1;        ///< keep the fewest tokens that sum to this probability; [0, 1], 0: one
  double min_p = 0;        ///< keep tokens at least min_p times as likely as the best; [0, 1]
  double repetition_penalty = 1;  ///< of tokens that occurred: l > 0 ? l / it : l * it; [0.01, 100]
  std::vector<LogitBias> logit_bias{};  ///< several biases of one token add up
  uint64_t seed = 0;                    ///< of this request: other requests change nothing
};

struct GenerateRequest {
  std::vector<int32_t> prompt;   ///< token ids, at least one
  int64_t max_new_tokens = 128;  ///< 0: nothing is computed
  int64_t num_samples = 1;       ///< 1 to 65,536 completions; sample i is drawn with seed + i
  SamplingOptions sampling{};
  std::vector<std::string> stop{};  ///< stop strings: a completion ends before the first of them
  bool ignore_eos = false;          ///< continue after an end-of-sequence token
  std::string cache_salt{};         ///< prefixes are shared only among requests with the same salt
  std::optional<std::chrono::steady_clock::time_point> deadline{};
};

enum class FinishReason {
  kStop,       ///< an end-of-sequence token, which is not in `tokens`, or a stop string
  kLength,     ///< max_new_tokens is reached, or the context is full
  kCancelled,  ///< by Cancel, by a callback, or by the end of the engine
  kDeadline,
  kFailed,  ///< see `error`
};

std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", "cancelled", ...

// Logits that were NaN, in all steps of a completion: a sign of damaged weights or of overflow.
struct NanLogits {
  int64_t count = 0;
  int32_t first_token = 0;  ///< the lowest id, in the first step that had any
  int64_t first_index = 0;  ///< that step chose tokens[first_index]
};

// One completion. Times are in microseconds since Submit.
struct GenerateResult {
  int64_t sample_idx = 0;       ///< 0 .. num_samples - 1
  std::vector<int32_t> tokens;  ///< new tokens, including those of a stop string
  std::string text;             ///< of the tokens, as TextStream decodes them, up to a stop string
  FinishReason finish_reason = FinishReason::kLength;
  bool context_is_full = false;  ///< kLength before max_new_tokens
  std::optional<Error> error;    ///< with kFailed
  std::optional<NanLogits> nan_logits;
  int64_t num_reused_tokens = 0;  ///< prompt tokens that were not computed for this completion
  int64_t num_preemptions = 0;
  int64_t first_token_us = 0;
  int64_t finished_us = 0;
};

// A new token, or the rest of the text of a completion that ends.
//
// The texts of all events of a sample, one after the other, are exactly its GenerateResult::text.
// Each text is whole characters that cannot turn out to be the start of a stop string. What was
// held back at the end comes in a last event without a token, before on_finish; there is none where
// nothing was held back.
struct TokenEvent {
  int64_t sample_idx = 0;
  std::optional<int32_t> token;  ///< none in the last event
  std::string_view text;         ///< valid during the call
};

// Called on the engine's thread, which waits meanwhile. Each may be empty. They must not throw.
// They may call any method of the engine but Generate, and may destroy the engine.
struct RequestCallbacks {
  // False cancels the request: no further token of any of its samples follows. A sample that ends
  // with this very token keeps its own reason to finish.
  std::function<bool(const TokenEvent& event)> on_token;
  std::function<void(GenerateResult result)> on_finish;  ///< exactly once for each sample
  // How many tokens of the prompt are in the cache, while it is computed.
  std::function<void(int64_t num_computed, int64_t num_total)> on_prompt;
};

enum class PrefixReuse {
  kOn,   ///< equal prefixes are stored and computed once
  kOff,  ///< each request computes all of its prompt
};

struct EngineOptions {
  int64_t max_sequences = 1;   ///< sequences in one step; others wait; at most 65,536
  int64_t context_tokens = 0;  ///< limit of prompt and new tokens; 0: see Engine::Create
  int64_t block_tokens = 16;   ///< tokens of a cache block; 0: contiguous, one block a sequence
  int64_t cache_bytes = 0;     ///< of keys and values; 0: max_sequences whole contexts
  int64_t batch_tokens = 512;  ///< token budget of a step; max_sequences if that is more
  PrefixReuse prefix_reuse = PrefixReuse::kOn;
  std::optional<DType> kv_dtype{};  ///< nullopt: the type of the weights; bf16 if quantized
  // nullopt: kUpFront if context_tokens or cache_bytes is set.
  std::optional<KvBacking> backing{};
  KvFill fill = KvFill::kAsMapped;  ///< for tests
  ExecOptions exec{};
};

// Counts since the creation of the engine, and its present state. A step that computes any prompt
// token counts as prompt. A sample is one completion of a request.
struct EngineStats {
  int64_t prompt_tokens = 0;
  int64_t prompt_us = 0;  ///< forward passes
  int64_t decode_tokens = 0;
  int64_t decode_us = 0;  ///< forward passes
  int64_t num_steps = 0;
  int64_t step_us = 0;  ///< forward passes and everything around them
  int64_t num_preemptions = 0;
  int64_t num_finished = 0;  ///< samples
  int64_t num_waiting = 0;   ///< samples, now
  int64_t num_running = 0;   ///< samples, now
  int64_t max_running = 0;   ///< the largest num_running
  KvUsage usage;             ///< now
  KvUsage peak;              ///< when the most bytes were reserved
  PrefixStats prefix;
};

// Identifies a request; 0 is invalid.
enum class RequestId : uint64_t {};

enum class ShutdownMode {
  kDrain,  ///< submitted requests run to their end
  kAbort,  ///< submitted requests are cancelled
};

// Generates completions for many requests at once, from one KV cache. A step is one forward pass
// over the next token of every running sequence, and over as many prompt tokens as its token budget
// allows. Requests join and leave between steps. A sequence that finds no free block is preempted
// in favor of older ones and resumes later.
//
// A completion depends on its prompt, options and seed. Other requests, cached prefixes and
// preemption change no bit of it.
//
// Threads  the engine has one thread, which sleeps when there is nothing to do; its methods may be
//          called from any thread
// fork     the child process does not have this thread. In the child, Submit and Generate of an
//          engine of the parent fail;
//          its other methods and its destructor return at once, and its memory is not freed.
//          An engine that the child creates works
class Engine {
 public:
  // With context_tokens = 0 the context is that of the model, or less if memory is insufficient:
  // what fits into half of the available memory / max_sequences, or into cache_bytes.
  // `model` must outlive the engine. If a callback destroys the engine, `model` must outlive the
  // last on_finish.
  // Errors  invalid_argument, unsupported: an option out of range;
  //         exhausted: insufficient memory or no thread; the message says what would fit
  static Result<std::unique_ptr<Engine>> Create(const Model& model, const EngineOptions& options);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Shutdown(ShutdownMode::kAbort). In a callback it returns before the requests have ended.
  ~Engine();

  // Appends a request to the queue.
  // Errors  invalid_argument: an empty prompt, a prompt longer than the context;
  //         a token or an option out of range;
  //         an empty stop string, any stop string for a model without a tokenizer;
  //         exhausted: more blocks than the cache has; the message says how many it needs;
  //         cancelled: the engine is shut down, or belongs to the parent process
  Result<RequestId> Submit(GenerateRequest request, RequestCallbacks callbacks = {});
  // Ends a request before its next step. Has no effect on a finished request.
  void Cancel(RequestId request);
  // Accepts no more requests, and waits until all have ended; in a callback it does not wait.
  void Shutdown(ShutdownMode mode);

  // Submits all requests and waits for them. Returns a result for every sample, in the order of
  // requests, then of samples; a failed one has its `error`, and does not affect the others.
  // Errors  as Submit: no request is run;  invalid_argument: called in a callback
  Result<std::vector<GenerateResult>> Generate(std::span<const GenerateRequest> requests);
  // The same with callbacks[i] for requests[i]; on_finish gets a copy of the result.
  Result<std::vector<GenerateResult>> Generate(std::span<const GenerateRequest> requests,
                                               std::span<const RequestCallbacks> callbacks);

  int64_t context_tokens() const;
  // Whether memory, not the model, limits the context.
  bool context_is_capped() const;
  const KvConfig& cache_config() const;
  std::string numerics() const;  ///< name and version: "canonical-1", "tiles-high-1"
  std::string_view isa() const;
  // Cost: O(requests that were submitted since the last step).
  EngineStats stats() const;

 private:
  struct State;
  explicit Engine(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with the engine's thread
};

}  // namespace kvick

#endif  // KVICK_ENGINE_H_
