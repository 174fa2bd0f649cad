#ifndef KVICK_ENGINE_GENERATION_H_
#define KVICK_ENGINE_GENERATION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/answer_text.h"
#include "engine/sampler.h"
#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"

namespace kvick {

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
  // The first text of a request, with the others as followers. `model` must outlive it.
  Generation(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens)
      : Generation(model, std::move(request), context_tokens, 0) {}

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
  // Tells the request its end, and that of the followers that never began: what ends a text before
  // its prompt is done ends them. REQUIRES: is_finished(); once.
  void ReportEnd();

  // --- The scheduler's: where the text stands. ---
  std::optional<SequenceId> sequence;  // while it runs on a cache
  std::optional<WritePlan> plan;       // of the present step
  int64_t num_done = 0;                // tokens whose keys and values are in the sequence
  int64_t num_now = 0;                 // tokens that the present step takes in
  bool shares_last_block = false;      // with a text that was forked, until the next step

  // Texts of the same prompt that wait for its logits: the next samples. They are made one by one.
  int64_t num_followers() const { return end_sample_ - next_sample_; }
  std::unique_ptr<Generation> TakeFollower();
  // The follower just taken leads those that are left.
  void LeaveFollowersTo(Generation& follower);
  int64_t num_texts() const { return 1 + num_followers(); }
  int64_t num_left() const { return num_tokens() - num_done; }
  std::span<const int32_t> tokens_now() const {
    return text().subspan(static_cast<size_t>(num_done), static_cast<size_t>(num_now));
  }
  // Whether this step only adds to the answer, by one token.
  bool is_decoding() const { return has_answered() && num_left() == 1; }
  GenerateResult& result() { return result_; }

 private:
  Generation(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens,
             int64_t sample_idx);
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
  int64_t next_sample_;  // of the followers
  int64_t end_sample_;
  bool is_finished_ = false;
};

using Generations = std::deque<std::unique_ptr<Generation>>;

}  // namespace kvick

#endif  // KVICK_ENGINE_GENERATION_H_
