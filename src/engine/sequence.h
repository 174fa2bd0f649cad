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

// A request in the engine: what its samples share.
struct ActiveRequest {
  RequestId id{};  // the oldest has the lowest
  GenerateRequest request;
  RequestCallbacks callbacks;
  PrefixScope scope;       // of sequences
  PrefixScope long_scope;  // of those longer than ModelInfo::rope_switch_length
  Clock::time_point submitted;
  bool is_cancelled = false;
};

// One sample of a request: its prompt and the tokens that follow. It chooses tokens and ends; where
// its keys and values are in the cache is up to the scheduler.
class Sequence {
 public:
  // The first sample of a request; the others are its pending samples. `model` must outlive it.
  Sequence(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens)
      : Sequence(model, std::move(request), context_tokens, 0) {}

  const ActiveRequest& request() const { return *request_; }
  int64_t sample_idx() const { return result_.sample_idx; }
  // Of an older request, or an earlier sample of the same.
  bool IsOlderThan(const Sequence& other) const;

  std::span<const int32_t> token_ids() const { return token_ids_; }
  int64_t num_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t num_prompt_tokens() const {
    return static_cast<int64_t>(request_->request.prompt.size());
  }
  // Whether it has other keys than a shorter sequence has (longrope).
  bool is_long() const;
  // What its keys and values are cached under: those that it has, or that it will have.
  const PrefixScope& scope() const {
    const bool has_long_scope = cached_sequence ? has_long_keys : is_long();
    return has_long_scope ? request_->long_scope : request_->scope;
  }
  // Prompt and new tokens, if nothing ends it early.
  int64_t max_tokens() const;
  bool has_answered() const { return num_tokens() > num_prompt_tokens(); }

  // Chooses the next token from the logits [V] of the last one, and emits it.
  void SampleNextToken(std::span<const float> logits);
  void Cancel() { Finish(FinishReason::kCancelled); }
  void Expire() { Finish(FinishReason::kDeadline); }
  void Fail(Error error);
  bool is_finished() const { return is_finished_; }
  // Emits the text that was held back, and reports the results of this sample and of its pending
  // samples: whatever ends it before the prompt is computed ends them. REQUIRES: is_finished();
  // once.
  void ReportEnd();

  // --- Set by the scheduler. ---
  std::optional<SequenceId> cached_sequence;  // while it is running
  std::optional<WritePlan> plan;              // of the present step
  bool has_long_keys = false;                 // is_long() of what is in the cache
  int64_t num_computed_tokens = 0;            // tokens whose keys and values are in the cache
  int64_t num_scheduled_tokens = 0;           // tokens that the present step computes
  bool shares_last_block = false;             // with a forked sample, until the next step

  // Samples of the same prompt that wait for its logits. They are created one by one.
  int64_t num_pending_samples() const { return end_sample_ - next_sample_; }
  std::unique_ptr<Sequence> TakePendingSample();
  // The sample just taken gets the other pending samples.
  void HandOverSamples(Sequence& sample);
  int64_t num_samples() const { return 1 + num_pending_samples(); }
  int64_t num_uncomputed_tokens() const { return num_tokens() - num_computed_tokens; }
  std::span<const int32_t> scheduled_tokens() const {
    return token_ids().subspan(static_cast<size_t>(num_computed_tokens),
                               static_cast<size_t>(num_scheduled_tokens));
  }
  // Whether only the newest of its tokens is to be computed.
  bool is_decoding() const { return has_answered() && num_uncomputed_tokens() == 1; }
  GenerateResult& result() { return result_; }

 private:
  Sequence(const Model& model, std::shared_ptr<ActiveRequest> request, int64_t context_tokens,
           int64_t sample_idx);
  void Finish(FinishReason reason);
  // The reason to finish after the newest token, if there is one.
  std::optional<FinishReason> ReasonToFinish();
  // Returns what on_token returns.
  bool Emit(std::optional<int32_t> token, std::string_view text) const;

  const Model* model_;
  std::shared_ptr<ActiveRequest> request_;
  int64_t context_tokens_;
  Sampler sampler_;
  StopStringFilter text_;
  std::vector<int32_t> token_ids_;  // prompt and new tokens
  GenerateResult result_;
  std::string_view held_back_text_;  // in text_, once finished
  int64_t next_sample_;              // of the pending samples
  int64_t end_sample_;
  bool is_finished_ = false;
};

using Sequences = std::deque<std::unique_ptr<Sequence>>;

}  // namespace kvick

#endif  // KVICK_ENGINE_SEQUENCE_H_
