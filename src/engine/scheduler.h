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
  int64_t context_tokens = 0;  // of one text
  PrefixReuse prefix_reuse = PrefixReuse::kOn;
};

// Decides who takes part in a step and with how many tokens, and finds them blocks.
//
//   * Every running text takes part with at least one token, the oldest first in everything; what
//     budget the step has left goes to prompts. So a long prompt delays nobody who answers.
//   * Those that wait are admitted in order of age, none before an older one, and only into blocks
//     that are there for the whole of it: counted, not tried.
//   * One that begins as another whose prompt is under way waits to find that beginning done.
//   * Where blocks run out, the youngest steps aside. What it had computed stays findable in the
//     cache, and goes to others only block by block, as they need it.
//
// No text waits forever: the oldest that runs is never the youngest unless it is alone, and alone
// it fits, which is checked before a request is taken.
class Scheduler {
 public:
  // `cache` must outlive it.
  Scheduler(KvCache& cache, const SchedulerLimits& limits);

  // Puts a text into the queue, where its age belongs.
  void Add(std::unique_ptr<Sequence> sequence);
  // Gives every running text its tokens and their plan. Errors: internal.
  Status PlanStep();
  // Commits the plans, whose keys and values are written. Errors: internal.
  Status CommitStep();
  // Drops the plans of a step that failed.
  void AbandonStep();
  // Runs the pending samples of a text that has taken in their prompt from its blocks, each of
  // which takes its first token from `logits`: as many as there is room for. Of those that
  // have to wait the first leads the others.
  void StartPendingSamples(Sequence& leader, std::span<const float> logits);
  enum class Among { kRunning, kAll };
  // Takes out those that are finished. Their tokens stay findable. Cost: a look at each.
  // Errors: internal.
  Result<Sequences> TakeFinished(Among among);

  const Sequences& running() const { return running_; }
  const Sequences& waiting() const { return waiting_; }
  int64_t num_waiting_samples() const {
    return num_waiting_samples_;
  }  // pending samples among them
  int64_t num_preemptions() const { return num_preemptions_; }

 private:
  bool reuses_prefixes() const { return limits_.prefix_reuse == PrefixReuse::kOn; }
  int64_t BlocksFor(int64_t num_tokens) const;
  bool LastBlockIsPart(const Sequence& sequence) const;
  // Blocks that the running texts are still without, for all that they have and one token more;
  // a last block that is shared is one to copy.
  int64_t NumPromisedBlocks() const;
  // Whether there are so many blocks beyond those promised, and one for each text that may yet
  // grow.
  bool HasRoom(int64_t num_blocks) const;
  bool CanAdmit(const Sequence& sequence) const;
  // Whether a prompt that is under way will leave more of this text in the cache than is there.
  bool IsBeingComputed(const Sequence& sequence, int64_t num_cached) const;
  void AssignTokenBudget();
  // Whether one more text can run from the blocks of another. What both write into a last block
  // that they share, each writes into a copy: the block itself is held until the step is committed.
  bool CanFork(const Sequence& leader) const;
  // REQUIRES: CanFork().
  Sequence& Fork(Sequence& leader, std::unique_ptr<Sequence> sample);
  Status ReserveOrPreempt(size_t running_idx);
  Status Preempt();
  Status AdmitWaiting(int64_t token_budget);
  Status Admit(Sequence& sequence, int64_t token_budget);
  // Ends the text's sequence.
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
