#include "prove/subject.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/threads.h"
#include "engine/sampler.h"
#include "model/forward.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

Result<std::unique_ptr<ModelRunner>> MakeRunner(const Model& model, const SubjectOptions& options) {
  RunnerOptions runner;
  runner.max_batch_tokens = options.context_tokens;
  runner.exec = options.exec;
  return ModelRunner::Create(model, runner);
}

}  // namespace

AttentionConfig AttentionOf(const Model& model, const SubjectOptions& options) {
  return AttentionOf(model.parts().file.spec(), model.info().DefaultKvDType(), options.exec);
}

Result<std::unique_ptr<CachedSubject>> CachedSubject::Create(const Model& model,
                                                             const SubjectOptions& options) {
  auto subject = std::make_unique<CachedSubject>();
  KVICK_ASSIGN_OR_RETURN(subject->runner_, MakeRunner(model, options));
  subject->switch_length_ = model.info().rope_switch_length;
  subject->text_.reserve(static_cast<size_t>(options.context_tokens));
  KvConfig config = model.info().KvGeometry(model.info().DefaultKvDType());
  config.fill = options.fill;
  config.block_tokens = options.block_tokens;
  if (options.block_tokens == 0) {
    config = config.Contiguous(1, options.context_tokens);
  } else {
    config.num_blocks = CeilDiv(options.context_tokens, options.block_tokens);
  }
  KVICK_ASSIGN_OR_RETURN(subject->cache_, KvCache::Create(config));
  return subject;
}

Status CachedSubject::Begin() {
  if (sequence_) KVICK_RETURN_IF_ERROR(cache_->Drop(*sequence_));
  sequence_ = cache_->CreateSequence();
  text_.clear();
  return {};
}

Status CachedSubject::Feed(std::span<const int32_t> tokens, std::span<float> logits) {
  const auto is_long = [this] { return switch_length_ > 0 && std::ssize(text_) > switch_length_; };
  const bool was_long = is_long();
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  if (is_long() && !was_long) {  // every key changes
    KVICK_RETURN_IF_ERROR(cache_->Reset(*sequence_));
    tokens = text_;
  }
  KVICK_ASSIGN_OR_RETURN(WritePlan plan,
                         cache_->Reserve(*sequence_, static_cast<int64_t>(tokens.size())));
  const SequenceChunk chunk{&plan, tokens};
  KVICK_RETURN_IF_ERROR(runner_->Run(*cache_, {&chunk, 1}, LogitsOf::kLast, logits));
  return cache_->Commit(std::move(plan));
}

Result<std::unique_ptr<RecomputedSubject>> RecomputedSubject::Create(
    const Model& model, const SubjectOptions& options) {
  auto subject = std::make_unique<RecomputedSubject>();
  KVICK_ASSIGN_OR_RETURN(subject->runner_, MakeRunner(model, options));
  return subject;
}

Status RecomputedSubject::Begin() {
  text_.clear();
  return {};
}

Status RecomputedSubject::Feed(std::span<const int32_t> tokens, std::span<float> logits) {
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  return runner_->RunUncached(text_, LogitsOf::kLast, logits);
}

Result<GreedyRun> RunGreedy(Subject& subject, std::span<const int32_t> prompt, int64_t num_tokens,
                            int64_t vocab_size, int64_t chunk_tokens) {
  const auto width = static_cast<size_t>(vocab_size);
  GreedyRun run;
  run.logits.reserve(static_cast<size_t>(num_tokens) * width);
  std::vector<float> logits(width);
  KVICK_RETURN_IF_ERROR(subject.Begin());
  for (size_t i = 0; i < prompt.size(); i += static_cast<size_t>(chunk_tokens)) {
    const size_t num = std::min(static_cast<size_t>(chunk_tokens), prompt.size() - i);
    KVICK_RETURN_IF_ERROR(subject.Feed(prompt.subspan(i, num), logits));
  }
  while (true) {
    KVICK_ASSIGN_OR_RETURN(const int32_t token, ArgMax(logits));
    run.tokens.push_back(token);
    run.logits.insert(run.logits.end(), logits.begin(), logits.end());
    if (static_cast<int64_t>(run.tokens.size()) == num_tokens) return run;
    KVICK_RETURN_IF_ERROR(subject.Feed({&token, 1}, logits));
  }
}

}  // namespace kvick
