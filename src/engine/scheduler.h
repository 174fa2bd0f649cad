#ifndef KVICK_ENGINE_SCHEDULER_H_
#define KVICK_ENGINE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "kvick/engine.h"
#include "kvick/kv_cache.h"

namespace kvick {

struct SchedulerLimits {
  int64_t max_running = 1;
  int64_t batch_tokens = 512;  // of one step; at least max_running
  int64_t context_tokens = 0;  // of one sequence
  PrefixReuse prefix_reuse = PrefixReuse::kOn;
};

// Decides which sequences take part in a step, with how many tokens, and gives them blocks.
//
//   * Every running sequence gets at least one token in each step. The rest of the token budget
//     goes to prompts, the oldest request first. So a long prompt costs others no step, but its
//     chunk makes each of their steps longer.
//   * Waiting sequences are admitted in order of age, none before an older one. Admission checks a
//     block budget: the blocks for the whole sequence must be available.
//   * A sequence that starts like another one whose prompt is being computed waits for that prompt.
//   * A sequence that outgrows the rope of its keys (Sequence::is_long) starts anew, once: all of
//   its
//     tokens are computed again.
//   * When blocks run out, the youngest sequence is preempted. Its blocks stay in the prefix cache,
//     evictable: what is still there when it resumes is not computed again.
//
// No sequence waits forever: the oldest running one is preempted only if it is alone, and alone it
// fits, as was checked before its request was accepted.
class Scheduler {
 public:
  // `cache` must outlive it.
  Scheduler(KvCache& cache, const SchedulerLimits& limits);

  // Adds a sequence to the queue, sorted by age.
  void Add(std::unique_ptr<Sequence> sequence);
  // Gives every running sequence its tokens and a plan. Errors: internal.
  Status PlanStep();
  // Commits the plans, whose keys and values are written. Errors: internal.
  Status CommitStep();
  // Drops the plans of a step that failed.
  void AbandonStep();
  // Forks the pending samples from a sequence whose prompt is computed, as many as there is room
  // for, and samples their first tokens from `logits`. The others wait: the first of them gets the
  // rest as its pending samples.
  void StartPendingSamples(Sequence& leader, std::span<const float> logits);
  enum class Among { kRunning, kAll };
  // Removes and returns the finished sequences. Their tokens stay in the prefix cache. Cost:
  // O(sequences). Errors: internal.
  Result<Sequences> TakeFinished(Among among);

  const Sequences& running() const { return running_; }
  const Sequences& waiting() const { return waiting_; }
  // Including pending samples of waiting sequences.
  int64_t num_waiting_samples() const { return num_waiting_samples_; }
  int64_t num_preemptions() const { return num_preemptions_; }

 private:
  bool reuses_prefixes() const { return limits_.prefix_reuse == PrefixReuse::kOn; }
  int64_t BlocksFor(int64_t num_tokens) const;
  bool LastBlockIsPart(const Sequence& sequence) const;
  // Blocks that the running sequences still need for all of their tokens and one more. A shared
  // last block counts: it will be copied.
  int64_t NumPromisedBlocks() const;
  // Whether so many blocks are available beyond the promised ones and one for each sequence that
  // may still grow.
  bool HasRoom(int64_t num_blocks) const;
  bool CanAdmit(const Sequence& sequence) const;
  // Whether a prompt that is being computed will leave more of this sequence in the cache than the
  // num_cached tokens that are there.
  bool IsBeingComputed(const Sequence& sequence, int64_t num_cached) const;
  void AssignTokenBudget();
  // Whether a sample can be forked from the blocks of its leader. If they share a part-filled last
  // block, both write to copies: the block itself is held until the step is committed.
  bool CanFork(const Sequence& leader) const;
  // REQUIRES: CanFork().
  Sequence& Fork(Sequence& leader, std::unique_ptr<Sequence> sample);
  Status ReserveOrPreempt(size_t running_idx);
  Status RestartOutgrown();
  Status Preempt(size_t running_idx);
  Status AdmitWaiting(int64_t token_budget);
  Status Admit(Sequence& sequence, int64_t token_budget);
  // Ends the sequence in the cache.
  Status Release(Sequence& sequence);

  KvCache& cache_;
  SchedulerLimits limits_;
  Sequences running_;  // the oldest first
  Sequences waiting_;  // the oldest first
  int64_t num_waiting_samples_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_SCHEDULER_H_
