#include "engine/batcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "engine/request_check.h"
#include "model/fingerprint.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

SchedulerLimits Limits(const EngineOptions& options, int64_t context_tokens) {
  return {options.max_sequences, BatchTokens(options), context_tokens, options.prefix_reuse};
}

}  // namespace

Result<std::unique_ptr<Batcher>> Batcher::Create(const Model& model, const EngineOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const ContextSize context,
                         ChooseContext(model.info(), options, AvailableMemoryBytes()));
  RunnerOptions runner_options;
  runner_options.kv_dtype = options.kv_dtype;
  runner_options.exec = options.exec;
  runner_options.max_sequences = options.max_sequences;
  runner_options.max_batch_tokens =
      std::min(BatchTokens(options), options.max_sequences * context.tokens);
  KVICK_ASSIGN_OR_RETURN(auto runner, ModelRunner::Create(model, runner_options));
  KVICK_ASSIGN_OR_RETURN(auto cache,
                         KvCache::Create(CacheConfig(model.info(), options, context.tokens)));
  std::unique_ptr<Batcher> batcher(
      new Batcher(model, options, context, std::move(cache), std::move(runner)));
  const int64_t logits_bytes =
      options.max_sequences * model.info().vocab_size * static_cast<int64_t>(sizeof(float));
  KVICK_ASSIGN_OR_RETURN(batcher->logits_, MappedRegion::Create(logits_bytes, Backing::kOnDemand));
  return batcher;
}

Batcher::Batcher(const Model& model, const EngineOptions& options, const ContextSize& context,
                 std::unique_ptr<KvCache> cache, std::unique_ptr<ModelRunner> runner)
    : model_(model),
      context_(context),
      cache_(std::move(cache)),
      runner_(std::move(runner)),
      scheduler_(*cache_, Limits(options, context.tokens)) {
  model_scope_.Text("model", Fingerprint(model.parts().file))
      .Text("cache_dtype", DTypeName(runner_->kv_dtype()))
      .Text("numerics", runner_->numerics());
  chunks_.reserve(static_cast<size_t>(options.max_sequences));
  scheduled_.reserve(static_cast<size_t>(options.max_sequences));
}

PrefixScope Batcher::ScopeOf(const GenerateRequest& request) const {
  PrefixScope scope = model_scope_;
  return scope.Text("cache_salt", request.cache_salt);
}

Status Batcher::Check(const GenerateRequest& request) const {
  KVICK_RETURN_IF_ERROR(CheckRequest(request, model_, context_.tokens));
  const KvConfig& config = cache_->config();
  const auto num_prompt = std::ssize(request.prompt);
  const int64_t num_new = std::min(context_.tokens + 1 - num_prompt, request.max_new_tokens);
  // The last token needs no slot.
  const int64_t num_blocks =
      CeilDiv(num_prompt + std::max<int64_t>(0, num_new - 1), config.block_tokens);
  if (num_blocks <= config.num_blocks) return {};
  return Fail(ErrorCode::kExhausted,
              "engine: a prompt of {} tokens and up to {} new ones need {} blocks of {} tokens, "
              "got a cache of "
              "{}",
              num_prompt, num_new, num_blocks, config.block_tokens, config.num_blocks);
}

void Batcher::Add(RequestId id, GenerateRequest request, RequestCallbacks callbacks,
                  Clock::time_point submitted) {
  PrefixScope scope = ScopeOf(request), long_scope = scope;
  long_scope.Text("rope", "long");
  const auto active = std::make_shared<ActiveRequest>(
      ActiveRequest{id, std::move(request), std::move(callbacks), std::move(scope),
                    std::move(long_scope), submitted});
  if (active->request.deadline) num_timed_ += active->request.num_samples;
  queue_has_ends_ |= active->request.max_new_tokens == 0;
  scheduler_.Add(std::make_unique<Sequence>(model_, active, context_.tokens));
}

template <class Body>
void Batcher::ForEachSequence(Body&& body) const {
  for (const Sequences* sequences : {&scheduler_.running(), &scheduler_.waiting()}) {
    for (const auto& sequence : *sequences) {
      if (!sequence->is_finished()) body(*sequence);
    }
  }
}

void Batcher::Cancel(std::span<const RequestId> ids) {
  if (ids.empty()) return;
  std::vector<RequestId> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  ForEachSequence([&sorted](Sequence& sequence) {
    if (std::ranges::binary_search(sorted, sequence.request().id)) sequence.Cancel();
  });
  queue_has_ends_ = true;
}

void Batcher::CancelAll() {
  ForEachSequence([](Sequence& sequence) { sequence.Cancel(); });
  queue_has_ends_ = true;
}

// Between steps, so that no sequence ends in the middle of one. The queue may be long: it is
// searched only if a request may have to end.
void Batcher::EndWhatMustEnd() {
  if (num_timed_ > 0 || was_cancelled_by_callback_) {
    const Clock::time_point now = Clock::now();
    ForEachSequence([now](Sequence& sequence) {
      if (sequence.request().is_cancelled) {
        sequence.Cancel();
      } else if (sequence.request().request.deadline &&
                 *sequence.request().request.deadline <= now) {
        sequence.Expire();
      }
    });
    queue_has_ends_ = true;
    was_cancelled_by_callback_ = false;
  }
  TakeFinished();
}

void Batcher::Step() {
  const Clock::time_point start = Clock::now();
  EndWhatMustEnd();
  if (!has_work()) return;
  Status status = scheduler_.PlanStep();
  if (status) status = RunPass();
  if (status) SampleNextTokens();
  if (!status) FailStep(status.error());
  TakeFinished();
  ++stats_.num_steps;
  stats_.step_us += MicrosecondsSince(start);
}

Status Batcher::RunPass() {
  chunks_.clear();
  scheduled_.clear();
  for (const auto& sequence : scheduler_.running()) {
    chunks_.push_back({&*sequence->plan, sequence->scheduled_tokens(), sequence->num_tokens()});
    scheduled_.push_back(sequence.get());
  }
  const Clock::time_point start = Clock::now();
  KVICK_RETURN_IF_ERROR(runner_->Run(*cache_, chunks_, LogitsOf::kLast, Logits(0, chunks_.size())));
  Count(start);
  return scheduler_.CommitStep();
}

std::span<float> Batcher::Logits(size_t first_row, size_t num_rows) const {
  const auto width = static_cast<size_t>(model_.info().vocab_size);
  return {reinterpret_cast<float*>(logits_.data()) + first_row * width, num_rows * width};
}

void Batcher::Count(Clock::time_point start) {
  int64_t num_tokens = 0;
  bool has_prompt = false;
  for (const Sequence* sequence : scheduled_) {
    num_tokens += sequence->num_scheduled_tokens;
    has_prompt |= !sequence->is_decoding();
  }
  (has_prompt ? stats_.prompt_tokens : stats_.decode_tokens) += num_tokens;
  (has_prompt ? stats_.prompt_us : stats_.decode_us) += MicrosecondsSince(start);
  stats_.max_running = std::max(stats_.max_running, std::ssize(scheduled_));
}

// Sequences whose tokens are all computed get their next token.
void Batcher::SampleNextTokens() {
  for (size_t row = 0; row < scheduled_.size(); ++row) {
    Sequence& sequence = *scheduled_[row];
    const auto& on_prompt = sequence.request().callbacks.on_prompt;
    if (on_prompt && !sequence.has_answered())
      on_prompt(sequence.num_computed_tokens, sequence.num_prompt_tokens());
    if (sequence.num_uncomputed_tokens() > 0) continue;
    const std::span<const float> logits = Logits(row, 1);
    sequence.SampleNextToken(logits);
    scheduler_.StartPendingSamples(sequence, logits);
    was_cancelled_by_callback_ |= sequence.request().is_cancelled;
  }
  const KvUsage usage = cache_->Usage();
  if (usage.reserved_bytes >= stats_.peak.reserved_bytes) stats_.peak = usage;
}

// The failure of a pass belongs to no sequence in particular: all that hold blocks fail.
void Batcher::FailStep(const Error& error) {
  scheduler_.AbandonStep();
  ForEachSequence([&error](Sequence& sequence) {
    if (sequence.cached_sequence) sequence.Fail(error);
  });
  queue_has_ends_ = true;
}

void Batcher::TakeFinished() {
  const bool among_all = std::exchange(queue_has_ends_, false);
  auto finished =
      scheduler_.TakeFinished(among_all ? Scheduler::Among::kAll : Scheduler::Among::kRunning);
  KVICK_CHECK(finished.has_value());
  for (auto& sequence : *finished) {
    stats_.num_finished += sequence->num_samples();
    if (sequence->request().request.deadline) num_timed_ -= sequence->num_samples();
    ended_.push_back(std::move(sequence));
  }
}

void Batcher::ReportEnds() {
  for (const auto& sequence : std::exchange(ended_, {})) sequence->ReportEnd();
}

EngineStats Batcher::stats() const {
  EngineStats stats = stats_;
  stats.num_preemptions = scheduler_.num_preemptions();
  stats.num_waiting = scheduler_.num_waiting_samples();
  for (const auto& sequence : scheduler_.running())
    stats.num_waiting += sequence->num_pending_samples();
  stats.num_running = std::ssize(scheduler_.running());
  stats.usage = cache_->Usage();
  stats.prefix = cache_->prefix_stats();
  return stats;
}

}  // namespace kvick
