#ifndef KVICK_PROVE_SUBJECT_H_
#define KVICK_PROVE_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvick/attention.h"
#include "kvick/exec.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// One way to run a model on one text after another. A proof compares several.
class Subject {
 public:
  virtual ~Subject() = default;

  // Starts a new text and forgets the last one.
  virtual Status Begin() = 0;
  // Appends tokens to the text and returns the logits [V] of the last of them.
  virtual Status Feed(std::span<const int32_t> tokens, std::span<float> logits) = 0;
};

struct SubjectOptions {
  int64_t context_tokens = 0;
  int64_t block_tokens = 16;  // 0: contiguous
  KvFill fill = KvFill::kAsMapped;
  ExecOptions exec{};
};

// The attention config of a runner with these options.
AttentionConfig AttentionOf(const Model& model, const SubjectOptions& options);

// The model with a KvCache.
class CachedSubject : public Subject {
 public:
  static Result<std::unique_ptr<CachedSubject>> Create(const Model& model,
                                                       const SubjectOptions& options);

  Status Begin() override;
  Status Feed(std::span<const int32_t> tokens, std::span<float> logits) override;

  KvCache& cache() { return *cache_; }
  ModelRunner& runner() { return *runner_; }
  SequenceId sequence() const { return *sequence_; }

 private:
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<ModelRunner> runner_;
  std::optional<SequenceId> sequence_;
  std::vector<int32_t> text_;
  int64_t switch_length_ = 0;  // ModelInfo::rope_switch_length
};

// Computes the whole text again at every step. Does not use the code of the cache.
class RecomputedSubject : public Subject {
 public:
  static Result<std::unique_ptr<RecomputedSubject>> Create(const Model& model,
                                                           const SubjectOptions& options);

  Status Begin() override;
  Status Feed(std::span<const int32_t> tokens, std::span<float> logits) override;

 private:
  std::unique_ptr<ModelRunner> runner_;
  std::vector<int32_t> text_;
};

// The result of a greedy run.
struct GreedyRun {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, V]: the logits that each token was chosen from
};

// Continues the prompt with num_tokens of the most likely tokens. The prompt is fed in chunks.
Result<GreedyRun> RunGreedy(Subject& subject, std::span<const int32_t> prompt, int64_t num_tokens,
                            int64_t vocab_size, int64_t chunk_tokens = 512);

}  // namespace kvick

#endif  // KVICK_PROVE_SUBJECT_H_
