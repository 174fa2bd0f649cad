#ifndef KVICK_ENGINE_SCHEDULER_H_
#define KVICK_ENGINE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/generation.h"
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
//     room the step has left goes to prompts. So a long prompt delays nobody who answers.
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
  void Add(std::unique_ptr<Generation> generation);
  // Gives every running text its tokens and their plan. Errors: internal.
  Status PlanStep();
  // Commits the plans, whose keys and values are written. Errors: internal.
  Status CommitStep();
  // Drops the plans of a step that failed.
  void AbandonStep();
  // Runs the followers of a text that has taken in their prompt from its blocks, each of which
  // takes its first token from `logits`: as many as there is room for. Of those that have to wait
  // the first leads the others.
  void StartFollowers(Generation& leader, std::span<const float> logits);
  enum class Among { kRunning, kAll };
  // Takes out those that are finished. Their tokens stay findable. Cost: a look at each.
  // Errors: internal.
  Result<Generations> TakeFinished(Among among);

  const Generations& running() const { return running_; }
  const Generations& waiting() const { return waiting_; }
  int64_t num_waiting_texts() const { return num_waiting_texts_; }  // followers among them
  int64_t num_preemptions() const { return num_preemptions_; }

 private:
  bool reuses_prefixes() const { return limits_.prefix_reuse == PrefixReuse::kOn; }
  int64_t BlocksFor(int64_t num_tokens) const;
  bool LastBlockIsPart(const Generation& generation) const;
  // Blocks that the running texts are still without, for all that they have and one token more;
  // a last block that is shared is one to copy.
  int64_t NumPromisedBlocks() const;
  // Whether there are so many blocks beyond those promised, and one for each text that may yet
  // grow.
  bool HasRoom(int64_t num_blocks) const;
  bool CanAdmit(const Generation& generation) const;
  // Whether a prompt that is under way will leave more of this text in the cache than is there.
  bool IsBeingComputed(const Generation& generation, int64_t num_cached) const;
  void ShareOut();
  // Whether one more text can run from the blocks of another. What both write into a last block
  // that they share, each writes into a copy: the block itself is held until the step is committed.
  bool CanFork(const Generation& leader) const;
  // REQUIRES: CanFork().
  Generation& Fork(Generation& leader, std::unique_ptr<Generation> follower);
  Status ReserveOrPreempt(size_t running_idx);
  Status Preempt();
  Status AdmitWaiting(int64_t room);
  Status Admit(Generation& generation, int64_t room);
  // Ends the text's sequence.
  Status Release(Generation& generation);

  KvCache& cache_;
  SchedulerLimits limits_;
  Generations running_;  // the oldest first
  Generations waiting_;  // the oldest first
  int64_t num_waiting_texts_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_SCHEDULER_H_
