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
#include "kvick/model.h"
#include "kvick/status.h"

namespace kvick {

struct RecomputeOptions {
  int64_t context_tokens = 0;  // 0: the model's, as far as half of the memory goes
  std::optional<DType> kv_dtype{};
  std::string_view isa = "auto";
  int num_threads = 0;
};

// What a cache is held against: the whole text anew for every token, by a forward pass that keeps
// nothing, without any of the cache's code.
class Recomputer {
 public:
  // `model` must outlive it. Errors: as Engine::Create.
  static Result<std::unique_ptr<Recomputer>> Create(const Model& model,
                                                    const RecomputeOptions& options);

  // The first sample of a request. Errors: invalid_argument: an empty prompt or a longer one than
  // the context, tokens or options out of range;  whatever ended it with kFailed.
  Result<GenerateResult> Generate(const GenerateRequest& request,
                                  const RequestCallbacks& callbacks = {});
  // Logits [tokens, V] of each position, by its own pass over its prefix.
  Status Logits(std::span<const int32_t> tokens, std::span<float> logits,
                const std::function<void(int64_t num_done)>& on_progress = {});

  const ContextSize& context() const { return context_; }
  const ModelRunner& runner() const { return *runner_; }
  // Times and tokens of Generate. The first pass of a text counts as prompt.
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
