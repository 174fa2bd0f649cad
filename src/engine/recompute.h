#ifndef KVICK_ENGINE_RECOMPUTE_H_
#define KVICK_ENGINE_RECOMPUTE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/context_size.h"
#include "engine/sequence.h"
#include "kvick/engine.h"
#include "kvick/exec.h"
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

struct RecomputeOptions {
  int64_t context_tokens = 0;  // 0: the model's, limited by half of the available memory
  std::optional<DType> kv_dtype{};
  ExecOptions exec{};
};

// Generation without a cache, as a reference: for every token a forward pass over the whole
// sequence, without any of the cache's code.
class Recomputer {
 public:
  // `model` must outlive it. Errors: as Engine::Create.
  static Result<std::unique_ptr<Recomputer>> Create(const Model& model,
                                                    const RecomputeOptions& options);

  // The first sample of a request. If it fails, the result has an error.
  // Errors  invalid_argument: as Engine::Submit
  Result<GenerateResult> Generate(const GenerateRequest& request,
                                  const RequestCallbacks& callbacks = {});
  // Logits [tokens, V], each row by a pass over the tokens up to its position.
  // Errors  invalid_argument: an empty prompt or one longer than the context, tokens outside of the
  //         vocabulary, logits of another size
  Status Logits(std::span<const int32_t> tokens, std::span<float> logits,
                const std::function<void(int64_t num_done)>& on_progress = {});

  const ContextSize& context() const { return context_; }
  const ModelRunner& runner() const { return *runner_; }
  // Times and tokens of Generate. The first pass of a request counts as prompt.
  const EngineStats& stats() const { return stats_; }

 private:
  Recomputer(const Model& model, const ContextSize& context, std::unique_ptr<ModelRunner> runner)
      : model_(model), context_(context), runner_(std::move(runner)) {}

  const Model& model_;
  ContextSize context_;
  std::unique_ptr<ModelRunner> runner_;
  EngineStats stats_;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_RECOMPUTE_H_
