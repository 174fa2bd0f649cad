#ifndef KVICK_ENGINE_GENERATION_H_
#define KVICK_ENGINE_GENERATION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/answer_text.h"
#include "engine/sampler.h"
#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"

namespace kvick {

using Clock = std::chrono::steady_clock;

// A request as the engine keeps it: what its texts share.
struct ActiveRequest {
  RequestId id{};  // ascending with age: the lowest is the oldest
  GenerateRequest request;
  RequestCallbacks callbacks;
  PrefixScope scope;
  Clock::time_point submitted;
  bool is_cancelled = false;
};

// One text under way, with the prompt at its beginning. Where its tokens stand in a cache is the
// scheduler's to decide and to change; what the next token is, is not.
class Generation {
 public:
  // `model` must outlive it.
  Generation(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t sample_idx,
             int64_t context_tokens);

  const ActiveRequest& request() const { return *request_; }
  int64_t sample_idx() const { return result_.sample_idx; }
  // Before another one: an older request, or an earlier text of the same.
  bool IsOlderThan(const Generation& other) const;

  std::span<const int32_t> text() const { return text_; }
  int64_t num_tokens() const { return static_cast<int64_t>(text_.size()); }
  int64_t num_prompt_tokens() const {
    return static_cast<int64_t>(request_->request.prompt.size());
  }
  // At its longest, if nothing ends it before.
  int64_t most_tokens() const;
  bool has_answered() const { return num_tokens() > num_prompt_tokens(); }

  // Chooses the next token from the logits [V] of the last one, and tells the request.
  void TakeToken(std::span<const float> logits);
  void Cancel() { Finish(FinishReason::kCancelled); }
  void Expire() { Finish(FinishReason::kDeadline); }
  void Fail(Error error);
  bool is_finished() const { return is_finished_; }
  // Tells the request its end. REQUIRES: is_finished(); once.
  void ReportEnd();

  // --- The scheduler's: where the text stands. ---
  std::optional<SequenceId> sequence;  // while it runs on a cache
  std::optional<WritePlan> plan;       // of the present step
  int64_t num_done = 0;                // tokens whose keys and values are in the sequence
  int64_t num_now = 0;                 // tokens that the present step takes in
  // Texts of the same prompt, which wait for its logits.
  std::vector<std::unique_ptr<Generation>> followers;

  int64_t num_left() const { return num_tokens() - num_done; }
  std::span<const int32_t> tokens_now() const {
    return text().subspan(static_cast<size_t>(num_done), static_cast<size_t>(num_now));
  }
  // Whether this step only adds to the answer, by one token.
  bool is_decoding() const { return has_answered() && num_left() == 1; }
  GenerateResult& result() { return result_; }

 private:
  void Finish(FinishReason reason);
  // False where the request wants no more.
  bool Tell(int32_t token, std::string_view shown) const;

  const Model* model_;
  std::shared_ptr<ActiveRequest> request_;
  int64_t context_tokens_;
  Sampler sampler_;
  AnswerText answer_;
  std::vector<int32_t> text_;  // prompt and new tokens
  GenerateResult result_;
  bool is_finished_ = false;
};

using Generations = std::vector<std::unique_ptr<Generation>>;

int64_t MicrosecondsSince(Clock::time_point start);

}  // namespace kvick

#endif  // KVICK_ENGINE_GENERATION_H_
