#include "engine/text_logits.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/memory.h"
#include "engine/request_check.h"

namespace kvick {

Result<std::unique_ptr<TextLogits>> TextLogits::Create(const Model& model,
                                                       const EngineOptions& options) {
  auto made = std::unique_ptr<TextLogits>(new TextLogits(model));
  KVICK_ASSIGN_OR_RETURN(made->context_,
                         ChooseContext(model.info(), options, AvailableMemoryBytes()));
  RunnerOptions runner_options;
  runner_options.kv_dtype = options.kv_dtype;
  runner_options.exec = options.exec;
  runner_options.max_sequences = 1;
  made->chunk_tokens_ = std::min(options.batch_tokens, made->context_.tokens);
  runner_options.max_batch_tokens = made->chunk_tokens_;
  KVICK_ASSIGN_OR_RETURN(made->runner_, ModelRunner::Create(model, runner_options));
  KVICK_ASSIGN_OR_RETURN(
      made->cache_, KvCache::Create(CacheConfig(model.info(), options, made->context_.tokens)));
  return made;
}

Status TextLogits::Logits(std::span<const int32_t> tokens, std::span<float> logits,
                          const std::function<void(int64_t num_done)>& on_progress) {
  KVICK_RETURN_IF_ERROR(CheckPrompt(tokens, model_.info(), context_.tokens));
  KVICK_RETURN_IF_ERROR(CheckLogitsSize(logits.size(), tokens.size(), model_.info()));
  const SequenceId sequence = cache_->CreateSequence();
  const Status status = RunChunks(sequence, tokens, logits, on_progress);
  KVICK_RETURN_IF_ERROR(cache_->Drop(sequence));
  return status;
}

Status TextLogits::RunChunks(SequenceId sequence, std::span<const int32_t> tokens,
                             std::span<float> logits,
                             const std::function<void(int64_t num_done)>& on_progress) {
  const size_t width = logits.size() / tokens.size();
  const auto max_tokens = static_cast<size_t>(chunk_tokens_);
  for (size_t i = 0; i < tokens.size(); i += max_tokens) {
    const size_t num = std::min(max_tokens, tokens.size() - i);
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache_->Reserve(sequence, static_cast<int64_t>(num)));
    const SequenceChunk chunk{&plan, tokens.subspan(i, num), static_cast<int64_t>(tokens.size())};
    KVICK_RETURN_IF_ERROR(
        runner_->Run(*cache_, {&chunk, 1}, LogitsOf::kAll, logits.subspan(i * width, num * width)));
    KVICK_RETURN_IF_ERROR(cache_->Commit(std::move(plan)));
    if (on_progress) on_progress(static_cast<int64_t>(i + num));
  }
  return {};
}

}  // namespace kvick
