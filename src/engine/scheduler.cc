#include "engine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/common_beginning.h"

namespace kvick {
namespace {

void InsertByAge(Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place =
      std::upper_bound(sequences.begin(), sequences.end(), sequence,
                       [](const auto& a, const auto& b) { return a->IsOlderThan(*b); });
  sequences.insert(place, std::move(sequence));
}

void MoveFinished(Sequences& from, Sequences& to) {
  const auto first = std::stable_partition(
      from.begin(), from.end(), [](const auto& sequence) { return !sequence->is_finished(); });
  std::move(first, from.end(), std::back_inserter(to));
  from.erase(first, from.end());
}

// The tokens to look up: all but the last, whose logits are to be computed.
std::span<const int32_t> LookedUp(const Sequence& sequence) {
  return sequence.token_ids().first(static_cast<size_t>(sequence.num_tokens() - 1));
}

}  // namespace

Scheduler::Scheduler(KvCache& cache, const SchedulerLimits& limits)
    : cache_(cache), limits_(limits) {
  KVICK_CHECK(limits.batch_tokens >= limits.max_running);
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence) {
  num_waiting_samples_ += sequence->num_samples();
  InsertByAge(waiting_, std::move(sequence));
}

Status Scheduler::PlanStep() {
  KVICK_RETURN_IF_ERROR(RestartOutgrown());
  AssignTokenBudget();
  const int64_t preemptions_before = num_preemptions_;
  for (size_t i = 0; i < running_.size(); ++i) KVICK_RETURN_IF_ERROR(ReserveOrPreempt(i));
  if (num_preemptions_ > preemptions_before) return {};
  int64_t token_budget = limits_.batch_tokens;
  for (const auto& sequence : running_) token_budget -= sequence->num_scheduled_tokens;
  return AdmitWaiting(token_budget);
}

// One token for each; the rest goes to those with more tokens, in order of age.
void Scheduler::AssignTokenBudget() {
  int64_t token_budget = limits_.batch_tokens - std::ssize(running_);
  for (const auto& sequence : running_) {
    sequence->num_scheduled_tokens =
        1 + std::min(sequence->num_uncomputed_tokens() - 1, token_budget);
    token_budget -= sequence->num_scheduled_tokens - 1;
  }
}

// The youngest is preempted until there is room; in the end the sequence itself.
Status Scheduler::ReserveOrPreempt(size_t running_idx) {
  while (running_idx < running_.size()) {
    Sequence& sequence = *running_[running_idx];
    auto plan = cache_.Reserve(*sequence.cached_sequence, sequence.num_scheduled_tokens);
    if (plan) {
      sequence.plan = *std::move(plan);
      return {};
    }
    const bool is_alone = running_.size() == 1;
    if (plan.error().code != ErrorCode::kExhausted || is_alone) return tl::unexpected(plan.error());
    KVICK_RETURN_IF_ERROR(Preempt(running_.size() - 1));
  }
  return {};
}

Status Scheduler::RestartOutgrown() {
  for (size_t i = running_.size(); i-- > 0;) {
    const Sequence& sequence = *running_[i];
    if (sequence.is_long() != sequence.has_long_keys) KVICK_RETURN_IF_ERROR(Preempt(i));
  }
  return {};
}

Status Scheduler::Preempt(size_t running_idx) {
  const auto place = running_.begin() + static_cast<std::ptrdiff_t>(running_idx);
  std::unique_ptr<Sequence> sequence = std::move(*place);
  running_.erase(place);
  ++sequence->result().num_preemptions;
  ++num_preemptions_;
  Sequence& preempted = *sequence;
  Add(std::move(sequence));
  return Release(preempted);
}

Status Scheduler::AdmitWaiting(int64_t token_budget) {
  while (!waiting_.empty() && token_budget > 0 && std::ssize(running_) < limits_.max_running) {
    Sequence& oldest = *waiting_.front();
    if (!CanAdmit(oldest)) return {};
    KVICK_RETURN_IF_ERROR(Admit(oldest, token_budget));
    token_budget -= oldest.num_scheduled_tokens;
    num_waiting_samples_ -= oldest.num_samples();
    InsertByAge(running_, std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return {};
}

Status Scheduler::Admit(Sequence& sequence, int64_t token_budget) {
  sequence.has_long_keys = sequence.is_long();
  sequence.cached_sequence = reuses_prefixes()
                                 ? cache_.CreateSequence(sequence.scope(), LookedUp(sequence))
                                 : cache_.CreateSequence();
  KVICK_ASSIGN_OR_RETURN(sequence.num_computed_tokens, cache_.Length(*sequence.cached_sequence));
  if (sequence.result().num_preemptions == 0)
    sequence.result().num_reused_tokens = sequence.num_computed_tokens;
  sequence.num_scheduled_tokens = std::min(sequence.num_uncomputed_tokens(), token_budget);
  KVICK_ASSIGN_OR_RETURN(sequence.plan,
                         cache_.Reserve(*sequence.cached_sequence, sequence.num_scheduled_tokens));
  return {};
}

bool Scheduler::CanAdmit(const Sequence& sequence) const {
  if (running_.empty()) return true;  // alone it fits
  PrefixMatch match;
  if (reuses_prefixes()) match = cache_.FindPrefix(sequence.scope(), LookedUp(sequence));
  if (IsBeingComputed(sequence, match.num_tokens)) return false;
  const int64_t block_tokens = cache_.config().block_tokens;
  const int64_t num_shared = match.num_tokens / block_tokens;
  // Evictable blocks that match are no longer available once the sequence holds them, except a last
  // one that matches in part: it is copied and given back, or detached.
  const bool is_last_in_part = match.num_tokens % block_tokens != 0;
  const int64_t num_held =
      std::max<int64_t>(0, match.num_evictable_blocks - (is_last_in_part ? 1 : 0));
  return HasRoom(BlocksFor(sequence.num_tokens() + 1) - num_shared + num_held);
}

bool Scheduler::IsBeingComputed(const Sequence& sequence, int64_t num_cached) const {
  if (!reuses_prefixes()) return false;
  const int64_t block_tokens = cache_.config().block_tokens;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    if (other->is_decoding() || !(other->scope() == sequence.scope())) return false;
    return NumCommonTokens(other->token_ids(), LookedUp(sequence)) / block_tokens * block_tokens >
           num_cached;
  });
}

bool Scheduler::HasRoom(int64_t num_blocks) const {
  const int64_t num_growing = std::ranges::count_if(running_, [this](const auto& sequence) {
    return BlocksFor(sequence->max_tokens()) > BlocksFor(sequence->num_tokens() + 1);
  });
  return num_blocks + NumPromisedBlocks() + num_growing <= cache_.num_available_blocks();
}

int64_t Scheduler::NumPromisedBlocks() const {
  int64_t num_blocks = 0;
  for (const auto& sequence : running_) {
    num_blocks += std::max<int64_t>(
        0, BlocksFor(sequence->num_tokens() + 1) -
               BlocksFor(sequence->num_computed_tokens + sequence->num_scheduled_tokens));
    if (sequence->shares_last_block) ++num_blocks;
  }
  return num_blocks;
}

bool Scheduler::LastBlockIsPart(const Sequence& sequence) const {
  return sequence.num_computed_tokens % cache_.config().block_tokens != 0;
}

int64_t Scheduler::BlocksFor(int64_t num_tokens) const {
  return CeilDiv(std::min(num_tokens, limits_.context_tokens), cache_.config().block_tokens);
}

Status Scheduler::CommitStep() {
  for (const auto& sequence : running_) {
    KVICK_RETURN_IF_ERROR(cache_.Commit(*std::exchange(sequence->plan, std::nullopt)));
    const bool was_decoding = sequence->is_decoding();
    sequence->num_computed_tokens += std::exchange(sequence->num_scheduled_tokens, 0);
    sequence->shares_last_block = false;
    if (was_decoding || !reuses_prefixes()) continue;
    const auto tokens =
        sequence->token_ids().first(static_cast<size_t>(sequence->num_computed_tokens));
    KVICK_RETURN_IF_ERROR(
        cache_.CachePrefix(*sequence->cached_sequence, sequence->scope(), tokens));
  }
  return {};
}

void Scheduler::AbandonStep() {
  for (const auto& sequence : running_) {
    sequence->plan.reset();
    sequence->num_scheduled_tokens = 0;
  }
}

void Scheduler::StartPendingSamples(Sequence& leader, std::span<const float> logits) {
  while (leader.num_pending_samples() > 0 && !leader.request().is_cancelled) {
    std::unique_ptr<Sequence> sample = leader.TakePendingSample();
    if (!CanFork(leader)) {
      leader.HandOverSamples(*sample);
      return Add(std::move(sample));
    }
    Fork(leader, std::move(sample)).SampleNextToken(logits);
  }
}

bool Scheduler::CanFork(const Sequence& leader) const {
  const bool is_first = LastBlockIsPart(leader) && !leader.shares_last_block;
  return std::ssize(running_) < limits_.max_running && HasRoom(is_first ? 2 : 1);
}

Sequence& Scheduler::Fork(Sequence& leader, std::unique_ptr<Sequence> sample) {
  const auto forked_id = cache_.Fork(*leader.cached_sequence);
  KVICK_CHECK(forked_id.has_value());
  sample->cached_sequence = *forked_id;
  sample->has_long_keys = leader.has_long_keys;
  sample->num_computed_tokens = leader.num_computed_tokens;
  sample->shares_last_block = leader.shares_last_block = LastBlockIsPart(leader);
  sample->result().num_reused_tokens = leader.num_computed_tokens;
  Sequence& forked = *sample;
  InsertByAge(running_, std::move(sample));
  return forked;
}

Result<Sequences> Scheduler::TakeFinished(Among among) {
  Sequences finished;
  if (among == Among::kAll) {
    MoveFinished(waiting_, finished);
    for (const auto& sequence : finished) num_waiting_samples_ -= sequence->num_samples();
  }
  MoveFinished(running_, finished);
  for (const auto& sequence : finished) {
    if (sequence->cached_sequence) KVICK_RETURN_IF_ERROR(Release(*sequence));
  }
  return finished;
}

Status Scheduler::Release(Sequence& sequence) {
  const PrefixScope& scope = sequence.scope();
  const SequenceId id = *std::exchange(sequence.cached_sequence, std::nullopt);
  const auto tokens = sequence.token_ids().first(
      static_cast<size_t>(std::exchange(sequence.num_computed_tokens, 0)));
  if (!reuses_prefixes()) return cache_.Drop(id);
  return cache_.FinishAndCache(id, scope, tokens);
}

}  // namespace kvick
