#ifndef KVICK_ENGINE_TEXT_LOGITS_H_
#define KVICK_ENGINE_TEXT_LOGITS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/context_size.h"
#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

// The logits at every position of one sequence, computed with a cache, options.batch_tokens at a
// time.
class TextLogits {
 public:
  // `model` must outlive it. Errors: as Engine::Create.
  static Result<std::unique_ptr<TextLogits>> Create(const Model& model,
                                                    const EngineOptions& options);

  // Logits [tokens, V].
  // Errors  invalid_argument: an empty prompt or one longer than the context, tokens outside of the
  //         vocabulary, logits of another size
  Status Logits(std::span<const int32_t> tokens, std::span<float> logits,
                const std::function<void(int64_t num_done)>& on_progress = {});

  const ContextSize& context() const { return context_; }
  const ModelRunner& runner() const { return *runner_; }

 private:
  explicit TextLogits(const Model& model) : model_(model) {}
  Status RunChunks(SequenceId sequence, std::span<const int32_t> tokens, std::span<float> logits,
                   const std::function<void(int64_t num_done)>& on_progress);

  const Model& model_;
  ContextSize context_;
  int64_t chunk_tokens_ = 0;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<KvCache> cache_;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_TEXT_LOGITS_H_
