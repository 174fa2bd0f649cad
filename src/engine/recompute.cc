#include "engine/recompute.h"

#include <utility>

#include "base/check.h"
#include "base/memory.h"
#include "engine/request_check.h"

namespace kvick {

Result<std::unique_ptr<Recomputer>> Recomputer::Create(const Model& model,
                                                       const RecomputeOptions& options) {
  KVICK_ASSIGN_OR_RETURN(
      const ContextSize context,
      ChooseUncachedContext(model.info(), options.context_tokens, AvailableMemoryBytes()));
  RunnerOptions runner_options;
  runner_options.kv_dtype = options.kv_dtype;
  runner_options.exec = options.exec;
  runner_options.max_sequences = 1;
  runner_options.max_batch_tokens = context.tokens;  // each pass computes all tokens
  KVICK_ASSIGN_OR_RETURN(auto runner, ModelRunner::Create(model, runner_options));
  return std::unique_ptr<Recomputer>(new Recomputer(model, context, std::move(runner)));
}

Result<GenerateResult> Recomputer::Generate(const GenerateRequest& request,
                                            const RequestCallbacks& callbacks) {
  KVICK_RETURN_IF_ERROR(CheckRequest(request, model_, context_.tokens));
  GenerateResult result;
  RequestCallbacks own = callbacks;
  own.on_finish = [&](GenerateResult finished) {
    if (callbacks.on_finish) callbacks.on_finish(finished);
    result = std::move(finished);
  };
  const auto active = std::make_shared<ActiveRequest>(
      ActiveRequest{RequestId{1}, request, std::move(own), {}, {}, Clock::now()});
  active->request.num_samples = 1;
  Sequence sequence(model_, active, context_.tokens);
  std::vector<float> logits(static_cast<size_t>(model_.info().vocab_size));
  while (!sequence.is_finished()) {
    const Clock::time_point start = Clock::now();
    KVICK_RETURN_IF_ERROR(runner_->RunUncached(sequence.token_ids(), LogitsOf::kLast, logits));
    const bool is_prompt = !sequence.has_answered();
    (is_prompt ? stats_.prompt_tokens : stats_.decode_tokens) +=
        is_prompt ? sequence.num_tokens() : 1;
    (is_prompt ? stats_.prompt_us : stats_.decode_us) += MicrosecondsSince(start);
    if (is_prompt && callbacks.on_prompt) {
      callbacks.on_prompt(sequence.num_tokens(), sequence.num_tokens());
    }
    sequence.SampleNextToken(logits);
  }
  sequence.ReportEnd();
  return result;
}

Status Recomputer::Logits(std::span<const int32_t> tokens, std::span<float> logits,
                          const std::function<void(int64_t num_computed_tokens)>& on_progress) {
  KVICK_RETURN_IF_ERROR(CheckPrompt(tokens, model_.info(), context_.tokens));
  KVICK_RETURN_IF_ERROR(CheckLogitsSize(logits.size(), tokens.size(), model_.info()));
  const auto vocab_size = static_cast<size_t>(model_.info().vocab_size);
  const auto length = static_cast<int64_t>(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    KVICK_RETURN_IF_ERROR(runner_->RunUncached(tokens.first(i + 1), LogitsOf::kLast,
                                               logits.subspan(i * vocab_size, vocab_size), length));
    if (on_progress) on_progress(static_cast<int64_t>(i) + 1);
  }
  return {};
}

}  // namespace kvick
