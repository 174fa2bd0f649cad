#include "engine/sequence.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace kvick {
namespace {

SamplingOptions SamplingOf(const GenerateRequest& request, int64_t sample_idx) {
  SamplingOptions sampling = request.sampling;
  sampling.seed += static_cast<uint64_t>(sample_idx);
  return sampling;
}

}  // namespace

Sequence::Sequence(const Model& model, std::shared_ptr<ActiveRequest> request,
                   int64_t context_tokens, int64_t sample_idx)
    : model_(&model),
      request_(std::move(request)),
      context_tokens_(context_tokens),
      sampler_(SamplingOf(request_->request, sample_idx)),
      text_(model, request_->request.stop),
      token_ids_(request_->request.prompt),
      next_sample_(sample_idx + 1),
      end_sample_(sample_idx == 0 ? request_->request.num_samples : next_sample_) {
  result_.sample_idx = sample_idx;
  if (request_->request.max_new_tokens == 0) Finish(FinishReason::kLength);
}

std::unique_ptr<Sequence> Sequence::TakePendingSample() {
  KVICK_CHECK(num_pending_samples() > 0);
  return std::unique_ptr<Sequence>(
      new Sequence(*model_, request_, context_tokens_, next_sample_++));
}

void Sequence::HandOverSamples(Sequence& sample) {
  KVICK_CHECK(sample.next_sample_ == next_sample_);
  sample.end_sample_ = std::exchange(end_sample_, next_sample_);
}

bool Sequence::IsOlderThan(const Sequence& other) const {
  return std::tuple(request_->id, sample_idx()) <
         std::tuple(other.request_->id, other.sample_idx());
}

bool Sequence::is_long() const {
  const int64_t switch_length = model_->info().rope_switch_length;
  return switch_length > 0 && num_tokens() > switch_length;
}

int64_t Sequence::max_tokens() const {
  return std::min(request_->request.max_new_tokens, context_tokens_ - num_prompt_tokens()) +
         num_prompt_tokens();
}

void Sequence::SampleNextToken(std::span<const float> logits) {
  if (request_->is_cancelled) return Cancel();  // by a sample of this very step
  const auto token = sampler_.Sample(logits, token_ids_);
  if (!token) return Fail(token.error());
  if (result_.tokens.empty()) result_.first_token_us = MicrosecondsSince(request_->submitted);
  const GenerateRequest& request = request_->request;
  const std::vector<int32_t>& eos_ids = model_->info().eos_ids;
  if (!request.ignore_eos && std::binary_search(eos_ids.begin(), eos_ids.end(), *token)) {
    return Finish(FinishReason::kStop);
  }
  token_ids_.push_back(*token);
  result_.tokens.push_back(*token);
  const bool goes_on = Emit(*token, text_.Append(*token));
  if (!goes_on) request_->is_cancelled = true;
  if (const auto reason = ReasonToFinish()) return Finish(*reason);
  if (!goes_on) Finish(FinishReason::kCancelled);
}

std::optional<FinishReason> Sequence::ReasonToFinish() {
  if (text_.is_stopped()) return FinishReason::kStop;
  if (std::ssize(result_.tokens) == request_->request.max_new_tokens) return FinishReason::kLength;
  if (num_tokens() <= context_tokens_) return std::nullopt;
  result_.context_is_full = true;
  return FinishReason::kLength;
}

bool Sequence::Emit(std::optional<int32_t> token, std::string_view text) const {
  const auto& on_token = request_->callbacks.on_token;
  return !on_token || on_token({result_.sample_idx, token, text});
}

void Sequence::Fail(Error error) {
  result_.error = std::move(error);
  Finish(FinishReason::kFailed);
}

void Sequence::Finish(FinishReason reason) {
  KVICK_CHECK(!is_finished_);
  result_.finish_reason = reason;
  held_back_text_ = text_.Finish();
  result_.text = text_.shown();
  result_.nan_logits = sampler_.nan_logits();
  is_finished_ = true;
}

void Sequence::ReportEnd() {
  if (!held_back_text_.empty()) Emit(std::nullopt, held_back_text_);
  const auto& on_finish = request_->callbacks.on_finish;
  if (!on_finish) return;
  result_.finished_us = MicrosecondsSince(request_->submitted);
  GenerateResult own = std::move(result_);
  const FinishReason reason = request_->is_cancelled ? FinishReason::kCancelled : own.finish_reason;
  const std::optional<Error> error = own.error;
  const int64_t finished_us = own.finished_us;
  on_finish(std::move(own));
  for (int64_t i = next_sample_; i < end_sample_; ++i) {
    GenerateResult never_started;
    never_started.sample_idx = i;
    never_started.finish_reason = reason;
    never_started.error = error;
    never_started.finished_us = finished_us;
    on_finish(std::move(never_started));
  }
}

}  // namespace kvick
