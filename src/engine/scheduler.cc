#include "engine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/common_beginning.h"

namespace kvick {
namespace {

void InsertByAge(Generations& generations, std::unique_ptr<Generation> generation) {
  const auto place =
      std::upper_bound(generations.begin(), generations.end(), generation,
                       [](const auto& a, const auto& b) { return a->IsOlderThan(*b); });
  generations.insert(place, std::move(generation));
}

void MoveFinished(Generations& from, Generations& to) {
  const auto first = std::stable_partition(from.begin(), from.end(),
                                           [](const auto& g) { return !g->is_finished(); });
  std::move(first, from.end(), std::back_inserter(to));
  from.erase(first, from.end());
}

// What is looked up: all but the last token, whose logits are wanted.
std::span<const int32_t> LookedUp(const Generation& g) {
  return g.text().first(static_cast<size_t>(g.num_tokens() - 1));
}

}  // namespace

Scheduler::Scheduler(KvCache& cache, const SchedulerLimits& limits)
    : cache_(cache), limits_(limits) {
  KVICK_CHECK(limits.batch_tokens >= limits.max_running);
}

void Scheduler::Add(std::unique_ptr<Generation> generation) {
  num_waiting_texts_ += generation->num_texts();
  InsertByAge(waiting_, std::move(generation));
}

Status Scheduler::PlanStep() {
  ShareOut();
  const int64_t preemptions_before = num_preemptions_;
  for (size_t i = 0; i < running_.size(); ++i) KVICK_RETURN_IF_ERROR(ReserveOrPreempt(i));
  if (num_preemptions_ > preemptions_before) return {};
  int64_t room = limits_.batch_tokens;
  for (const auto& g : running_) room -= g->num_now;
  return AdmitWaiting(room);
}

// One token each; what is left to those that have more, in order of age.
void Scheduler::ShareOut() {
  int64_t room = limits_.batch_tokens - std::ssize(running_);
  for (const auto& g : running_) {
    g->num_now = 1 + std::min(g->num_left() - 1, room);
    room -= g->num_now - 1;
  }
}

// The youngest steps aside until there is room: at the last the text itself.
Status Scheduler::ReserveOrPreempt(size_t running_idx) {
  while (running_idx < running_.size()) {
    Generation& g = *running_[running_idx];
    auto plan = cache_.Reserve(*g.sequence, g.num_now);
    if (plan) {
      g.plan = *std::move(plan);
      return {};
    }
    const bool is_alone = running_.size() == 1;
    if (plan.error().code != ErrorCode::kExhausted || is_alone) return tl::unexpected(plan.error());
    KVICK_RETURN_IF_ERROR(Preempt());
  }
  return {};
}

Status Scheduler::Preempt() {
  std::unique_ptr<Generation> youngest = std::move(running_.back());
  running_.pop_back();
  ++youngest->result().num_preemptions;
  ++num_preemptions_;
  Generation& preempted = *youngest;
  Add(std::move(youngest));
  return Release(preempted);
}

Status Scheduler::AdmitWaiting(int64_t room) {
  while (!waiting_.empty() && room > 0 && std::ssize(running_) < limits_.max_running) {
    Generation& oldest = *waiting_.front();
    if (!CanAdmit(oldest)) return {};
    KVICK_RETURN_IF_ERROR(Admit(oldest, room));
    room -= oldest.num_now;
    num_waiting_texts_ -= oldest.num_texts();
    InsertByAge(running_, std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return {};
}

Status Scheduler::Admit(Generation& g, int64_t room) {
  g.sequence = reuses_prefixes() ? cache_.CreateSequence(g.request().scope, LookedUp(g))
                                 : cache_.CreateSequence();
  KVICK_ASSIGN_OR_RETURN(g.num_done, cache_.Length(*g.sequence));
  if (g.result().num_preemptions == 0) g.result().num_reused_tokens = g.num_done;
  g.num_now = std::min(g.num_left(), room);
  KVICK_ASSIGN_OR_RETURN(g.plan, cache_.Reserve(*g.sequence, g.num_now));
  return {};
}

bool Scheduler::CanAdmit(const Generation& g) const {
  if (running_.empty()) return true;  // alone it fits
  PrefixMatch match;
  if (reuses_prefixes()) match = cache_.FindPrefix(g.request().scope, LookedUp(g));
  if (IsBeingComputed(g, match.num_tokens)) return false;
  const int64_t block_tokens = cache_.config().block_tokens;
  const int64_t num_shared = match.num_tokens / block_tokens;
  // Blocks that only wait to be reused are no longer to be had once the text holds them, but for a
  // last one that is equal in part: it is copied and goes back, or is taken over.
  const bool is_last_in_part = match.num_tokens % block_tokens != 0;
  const int64_t num_held =
      std::max<int64_t>(0, match.num_evictable_blocks - (is_last_in_part ? 1 : 0));
  return HasRoom(BlocksFor(g.num_tokens() + 1) - num_shared + num_held);
}

bool Scheduler::IsBeingComputed(const Generation& g, int64_t num_cached) const {
  if (!reuses_prefixes()) return false;
  const int64_t block_tokens = cache_.config().block_tokens;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    if (other->is_decoding() || !(other->request().scope == g.request().scope)) return false;
    return NumCommonTokens(other->text(), LookedUp(g)) / block_tokens * block_tokens > num_cached;
  });
}

bool Scheduler::HasRoom(int64_t num_blocks) const {
  const int64_t num_growing = std::ranges::count_if(running_, [this](const auto& g) {
    return BlocksFor(g->most_tokens()) > BlocksFor(g->num_tokens() + 1);
  });
  return num_blocks + NumPromisedBlocks() + num_growing <= cache_.num_available_blocks();
}

int64_t Scheduler::NumPromisedBlocks() const {
  int64_t num_blocks = 0;
  for (const auto& g : running_) {
    num_blocks +=
        std::max<int64_t>(0, BlocksFor(g->num_tokens() + 1) - BlocksFor(g->num_done + g->num_now));
    if (g->shares_last_block) ++num_blocks;
  }
  return num_blocks;
}

bool Scheduler::LastBlockIsPart(const Generation& g) const {
  return g.num_done % cache_.config().block_tokens != 0;
}

int64_t Scheduler::BlocksFor(int64_t num_tokens) const {
  return CeilDiv(std::min(num_tokens, limits_.context_tokens), cache_.config().block_tokens);
}

Status Scheduler::CommitStep() {
  for (const auto& g : running_) {
    KVICK_RETURN_IF_ERROR(cache_.Commit(*std::exchange(g->plan, std::nullopt)));
    const bool was_decoding = g->is_decoding();
    g->num_done += std::exchange(g->num_now, 0);
    g->shares_last_block = false;
    if (was_decoding || !reuses_prefixes()) continue;
    const auto tokens = g->text().first(static_cast<size_t>(g->num_done));
    KVICK_RETURN_IF_ERROR(cache_.Publish(*g->sequence, g->request().scope, tokens));
  }
  return {};
}

void Scheduler::AbandonStep() {
  for (const auto& g : running_) {
    g->plan.reset();
    g->num_now = 0;
  }
}

void Scheduler::StartFollowers(Generation& leader, std::span<const float> logits) {
  while (leader.num_followers() > 0 && !leader.request().is_cancelled) {
    std::unique_ptr<Generation> follower = leader.TakeFollower();
    if (!CanFork(leader)) {
      leader.LeaveFollowersTo(*follower);
      return Add(std::move(follower));
    }
    Fork(leader, std::move(follower)).TakeToken(logits);
  }
}

bool Scheduler::CanFork(const Generation& leader) const {
  const bool is_first = LastBlockIsPart(leader) && !leader.shares_last_block;
  return std::ssize(running_) < limits_.max_running && HasRoom(is_first ? 2 : 1);
}

Generation& Scheduler::Fork(Generation& leader, std::unique_ptr<Generation> follower) {
  const auto sequence = cache_.Fork(*leader.sequence);
  KVICK_CHECK(sequence.has_value());
  follower->sequence = *sequence;
  follower->num_done = leader.num_done;
  follower->shares_last_block = leader.shares_last_block = LastBlockIsPart(leader);
  follower->result().num_reused_tokens = leader.num_done;
  Generation& forked = *follower;
  InsertByAge(running_, std::move(follower));
  return forked;
}

Result<Generations> Scheduler::TakeFinished(Among among) {
  Generations finished;
  if (among == Among::kAll) {
    MoveFinished(waiting_, finished);
    for (const auto& g : finished) num_waiting_texts_ -= g->num_texts();
  }
  MoveFinished(running_, finished);
  for (const auto& g : finished) {
    if (g->sequence) KVICK_RETURN_IF_ERROR(Release(*g));
  }
  return finished;
}

Status Scheduler::Release(Generation& g) {
  const SequenceId sequence = *std::exchange(g.sequence, std::nullopt);
  const auto tokens = g.text().first(static_cast<size_t>(std::exchange(g.num_done, 0)));
  if (!reuses_prefixes()) return cache_.Drop(sequence);
  return cache_.Retire(sequence, g.request().scope, tokens);
}

}  // namespace kvick
