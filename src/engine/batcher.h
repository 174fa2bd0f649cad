#ifndef KVICK_ENGINE_BATCHER_H_
#define KVICK_ENGINE_BATCHER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"
#include "engine/context_size.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"

namespace kvick {

// The engine without its thread: each Step runs one forward pass over all running sequences.
// The same calls in the same order have the same results.
//
// Threads  one at a time, except for Check
class Batcher {
 public:
  // Errors: as Engine::Create.
  static Result<std::unique_ptr<Batcher>> Create(const Model& model, const EngineOptions& options);

  // Whether a request can run. Errors: as Engine::Submit, without cancelled.
  Status Check(const GenerateRequest& request) const;
  // Appends a request to the queue. REQUIRES: Check(request); ids ascend.
  void Add(RequestId id, GenerateRequest request, RequestCallbacks callbacks,
           Clock::time_point submitted);
  // Ends requests. Has no effect on finished ones.
  void Cancel(std::span<const RequestId> ids);
  void CancelAll();

  bool has_work() const { return !scheduler_.running().empty() || !scheduler_.waiting().empty(); }
  // One forward pass, if there is anything to do. Finished sequences give their blocks back.
  void Step();
  // Calls the callbacks of the sequences that have finished since the last call.
  void ReportEnds();

  EngineStats stats() const;
  const ContextSize& context() const { return context_; }
  const KvCache& cache() const { return *cache_; }
  const ModelRunner& runner() const { return *runner_; }
  // Evicts the prefixes of finished sequences.
  void ClearPrefixCache() { cache_->ClearPrefixCache(); }

 private:
  Batcher(const Model& model, const EngineOptions& options, const ContextSize& context,
          std::unique_ptr<KvCache> cache, std::unique_ptr<ModelRunner> runner);

  PrefixScope ScopeOf(const GenerateRequest& request) const;
  // Calls body(sequence) for all sequences that have not finished. Cost: O(sequences).
  template <class Body>
  void ForEachSequence(Body&& body) const;
  void EndWhatMustEnd();
  Status RunPass();
  std::span<float> Logits(size_t first_row, size_t num_rows) const;
  void Count(Clock::time_point start);
  void SampleNextTokens();
  void FailStep(const Error& error);
  void TakeFinished();

  const Model& model_;
  ContextSize context_;
  PrefixScope model_scope_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<ModelRunner> runner_;
  Scheduler scheduler_;
  EngineStats stats_;
  std::vector<SequenceChunk> chunks_;
  std::vector<Sequence*> scheduled_;  // in the present pass; each has a row of logits
  MappedRegion logits_;               // [max_sequences, V] f32
  Sequences ended_;                   // not reported yet
  int64_t num_timed_ = 0;             // samples with a deadline that have not finished
  bool was_cancelled_by_callback_ = false;
  bool queue_has_ends_ = false;  // some waiting sequences have finished
};

}  // namespace kvick

#endif  // KVICK_ENGINE_BATCHER_H_
