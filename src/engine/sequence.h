#ifndef KVICK_ENGINE_SEQUENCE_H_
#define KVICK_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/sampler.h"
#include "engine/stop_string_filter.h"
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
class Sequence {
 public:
  // The first text of a request, with the others as pending samples. `model` must outlive it.
  Sequence(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens)
      : Sequence(model, std::move(request), context_tokens, 0) {}

  const ActiveRequest& request() const { return *request_; }
  int64_t sample_idx() const { return result_.sample_idx; }
  // Before another one: an older request, or an earlier text of the same.
  bool IsOlderThan(const Sequence& other) const;

  std::span<const int32_t> token_ids() const { return token_ids_; }
  int64_t num_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t num_prompt_tokens() const {
    return static_cast<int64_t>(request_->request.prompt.size());
  }
  // At its longest, if nothing ends it before.
  int64_t max_tokens() const;
  bool has_answered() const { return num_tokens() > num_prompt_tokens(); }

  // Chooses the next token from the logits [V] of the last one, and tells the request.
  void SampleNextToken(std::span<const float> logits);
  void Cancel() { Finish(FinishReason::kCancelled); }
  void Expire() { Finish(FinishReason::kDeadline); }
  void Fail(Error error);
  bool is_finished() const { return is_finished_; }
  // Tells the request its end, and that of the pending samples that never began: what ends a text
  // before its prompt is done ends them. REQUIRES: is_finished(); once.
  void ReportEnd();

  // --- The scheduler's: where the text stands. ---
  std::optional<SequenceId> cached_sequence;  // while it runs on a cache
  std::optional<WritePlan> plan;              // of the present step
  int64_t num_computed_tokens = 0;            // tokens whose keys and values are in the sequence
  int64_t num_scheduled_tokens = 0;           // tokens that the present step takes in
  bool shares_last_block = false;             // with a text that was forked, until the next step

  // Texts of the same prompt that wait for its logits: the next samples. They are made one by one.
  int64_t num_pending_samples() const { return end_sample_ - next_sample_; }
  std::unique_ptr<Sequence> TakePendingSample();
  // The sample just taken leads those that are left.
  void HandOverSamples(Sequence& sample);
  int64_t num_samples() const { return 1 + num_pending_samples(); }
  int64_t num_uncomputed_tokens() const { return num_tokens() - num_computed_tokens; }
  std::span<const int32_t> scheduled_tokens() const {
    return token_ids().subspan(static_cast<size_t>(num_computed_tokens),
                               static_cast<size_t>(num_scheduled_tokens));
  }
  // Whether this step only adds to the answer, by one token.
  bool is_decoding() const { return has_answered() && num_uncomputed_tokens() == 1; }
  GenerateResult& result() { return result_; }

 private:
  Sequence(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens,
           int64_t sample_idx);
  void Finish(FinishReason reason);
  // False where the request wants no more.
  bool Emit(int32_t token, std::string_view shown) const;

  const Model* model_;
  std::shared_ptr<ActiveRequest> request_;
  int64_t context_tokens_;
  Sampler sampler_;
  StopStringFilter answer_;
  std::vector<int32_t> token_ids_;  // prompt and new tokens
  GenerateResult result_;
  int64_t next_sample_;  // of the pending samples
  int64_t end_sample_;
  bool is_finished_ = false;
};

using Sequences = std::deque<std::unique_ptr<Sequence>>;

}  // namespace kvick

#endif  // KVICK_ENGINE_SEQUENCE_H_
