#ifndef KVICK_PROVE_SUBJECT_H_
#define KVICK_PROVE_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvick/attention.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// One way to run a model, text after text: what a proof compares.
class Subject {
 public:
  virtual ~Subject() = default;

  // Starts a new text, whatever went before.
  virtual Status Begin() = 0;
  // Takes in the next tokens of the text; logits [V] of the last of them.
  virtual Status Feed(std::span<const int32_t> tokens, std::span<float> logits) = 0;
};

struct SubjectOptions {
  int64_t context_tokens = 0;
  int64_t block_tokens = 16;  // 0: contiguous
  KvFill fill = KvFill::kAsMapped;
  std::string_view isa = "auto";
  int num_threads = 0;
};

// The attention that a runner of these options would have.
AttentionConfig AttentionOf(const ModelInfo& info, const SubjectOptions& options);

// Through a cache, as it should be.
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
};

// The whole text anew at every step, without the cache's code.
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

// What a greedy run gave.
struct GreedyRun {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, V]: those that chose each token
};

// The most likely token after the prompt, and so on. The prompt goes in `chunk_tokens` at a time.
Result<GreedyRun> RunGreedy(Subject& subject, std::span<const int32_t> prompt, int64_t num_tokens,
                            int64_t vocab_size, int64_t chunk_tokens = 512);

}  // namespace kvick

#endif  // KVICK_PROVE_SUBJECT_H_
