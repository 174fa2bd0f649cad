#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/exec.h"
#include "base/mapped_array.h"
#include "kvick/model.h"
#include "model/forward.h"
#include "model/kv_target.h"
#include "model/model_parts.h"
#include "model/pass_tokens.h"

namespace kvick {
namespace {

// Rows of logits are indexed by int32_t.
constexpr int64_t kMaxBatchTokens = int64_t{1} << 31;

Status CheckRange(const char* name, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return {};
  return Fail(ErrorCode::kInvalidArgument, "model: {}: expected 1 to {}, got {}", name, max, value);
}

}  // namespace

struct ModelRunner::State {
  const Model::Parts* model;
  AttentionConfig attention;
  std::unique_ptr<Forward> forward;
  PassTokens tokens;
  MappedArray<AttentionQuery> queries;  // [max_sequences]
  CachedKv cached;

  Status CheckTokens(std::span<const int32_t> ids) const;
  Status CheckCache(const KvCache& cache) const;
  Status CheckSize(int64_t num_tokens, int64_t num_rows, size_t num_logits) const;
  Result<int64_t> CheckChunks(std::span<const SequenceChunk> chunks) const;
  Status RunPass(KvTarget& kv, std::span<float> logits);
};

Status ModelRunner::State::CheckTokens(std::span<const int32_t> ids) const {
  const int64_t vocab_size = model->info.vocab_size;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument, "model: token ids: expected 0 to {}, got {}",
                  vocab_size - 1, id);
    }
  }
  return {};
}

Status ModelRunner::State::CheckCache(const KvCache& cache) const {
  const KvLayout& layout = cache.layout();
  const ModelInfo& info = model->info;
  if (layout.num_layers == info.num_layers && layout.num_kv_heads == info.num_kv_heads &&
      layout.head_dim == info.head_dim && layout.dtype == attention.dtype) {
    return {};
  }
  return Fail(ErrorCode::kInvalidArgument,
              "model: expected a cache of {} layers and {} KV heads of {} {}, got {} layers and {} "
              "KV heads of {} {}",
              info.num_layers, info.num_kv_heads, info.head_dim, DTypeName(attention.dtype),
              layout.num_layers, layout.num_kv_heads, layout.head_dim, DTypeName(layout.dtype));
}

Status ModelRunner::State::CheckSize(int64_t num_tokens, int64_t num_rows,
                                     size_t num_logits) const {
  if (num_tokens < 1 || num_tokens > forward->max_tokens()) {
    return Fail(ErrorCode::kInvalidArgument, "model: expected 1 to {} tokens in one pass, got {}",
                forward->max_tokens(), num_tokens);
  }
  const int64_t expected = num_rows * model->info.vocab_size;
  if (static_cast<int64_t>(num_logits) != expected) {
    return Fail(ErrorCode::kInvalidArgument, "model: expected memory for {} logits, got {}",
                expected, num_logits);
  }
  return {};
}

// The number of their tokens.
Result<int64_t> ModelRunner::State::CheckChunks(std::span<const SequenceChunk> chunks) const {
  if (static_cast<int64_t>(chunks.size()) > queries.size()) {
    return Fail(ErrorCode::kInvalidArgument,
                "model: expected at most {} chunks in one pass, got {}", queries.size(),
                chunks.size());
  }
  int64_t num_tokens = 0;
  for (const SequenceChunk& chunk : chunks) {
    if (chunk.plan == nullptr) {
      return Fail(ErrorCode::kInvalidArgument, "model: expected a plan for each chunk, got none");
    }
    if (chunk.plan->num_tokens() < 1) {
      return Fail(ErrorCode::kInvalidArgument,
                  "model: expected a plan of tokens, got an empty one");
    }
    KVICK_RETURN_IF_ERROR(CheckTokens(chunk.tokens));
    if (static_cast<int64_t>(chunk.tokens.size()) != chunk.plan->num_tokens()) {
      return Fail(ErrorCode::kInvalidArgument, "model: expected {} tokens, as the plan has, got {}",
                  chunk.plan->num_tokens(), chunk.tokens.size());
    }
    num_tokens += chunk.plan->num_tokens();
  }
  return num_tokens;
}

Status ModelRunner::State::RunPass(KvTarget& kv, std::span<float> logits) {
  return forward->Run(
      {tokens.ids(), tokens.positions(), tokens.lengths(), tokens.output_rows(), logits, &kv});
}

ModelRunner::ModelRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelRunner::~ModelRunner() = default;

Result<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model,
                                                         const RunnerOptions& options) {
  KVICK_RETURN_IF_ERROR(CheckRange("max_batch_tokens", options.max_batch_tokens, kMaxBatchTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, kMaxBatchTokens));
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(options.exec));
  const DType kv_dtype = options.kv_dtype.value_or(model.info().DefaultKvDType());
  const AttentionConfig attention =
      AttentionOf(model.parts().file.spec(), kv_dtype, OptionsOf(exec));
  KVICK_ASSIGN_OR_RETURN(auto forward,
                         Forward::Create(model.parts().file, attention, options.max_batch_tokens));
  KVICK_ASSIGN_OR_RETURN(PassTokens tokens, PassTokens::Create(options.max_batch_tokens));
  KVICK_ASSIGN_OR_RETURN(auto queries,
                         MappedArray<AttentionQuery>::Create("model: chunks", options.max_sequences,
                                                             Backing::kOnDemand));
  return std::unique_ptr<ModelRunner>(new ModelRunner(
      std::make_unique<State>(State{&model.parts(), attention, std::move(forward),
                                    std::move(tokens), std::move(queries), CachedKv()})));
}

Status ModelRunner::Run(KvCache& cache, std::span<const SequenceChunk> chunks, LogitsOf which,
                        std::span<float> logits) {
  KVICK_RETURN_IF_ERROR(state_->CheckCache(cache));
  KVICK_ASSIGN_OR_RETURN(const int64_t num_tokens, state_->CheckChunks(chunks));
  const auto num_rows = which == LogitsOf::kAll ? num_tokens : static_cast<int64_t>(chunks.size());
  KVICK_RETURN_IF_ERROR(state_->CheckSize(num_tokens, num_rows, logits.size()));
  state_->tokens.Clear();
  for (const SequenceChunk& chunk : chunks) {
    const int64_t num_new = chunk.plan->num_tokens();
    const int64_t length = std::max(chunk.length, chunk.plan->position(num_new - 1) + 1);
    for (int64_t i = 0; i < num_new; ++i) {
      state_->tokens.Add(chunk.tokens[static_cast<size_t>(i)], chunk.plan->position(i), length);
      const bool is_last = i + 1 == num_new;
      if (which == LogitsOf::kAll || is_last) state_->tokens.WantLogits();
    }
  }
  KVICK_RETURN_IF_ERROR(state_->cached.Begin(cache, chunks, {&state_->queries[0], chunks.size()}));
  return state_->RunPass(state_->cached, logits);
}

Status ModelRunner::RunUncached(std::span<const int32_t> tokens, LogitsOf which,
                                std::span<float> logits, int64_t length) {
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  KVICK_RETURN_IF_ERROR(state_->CheckTokens(tokens));
  KVICK_RETURN_IF_ERROR(
      state_->CheckSize(num_tokens, which == LogitsOf::kAll ? num_tokens : 1, logits.size()));
  state_->tokens.Clear();
  for (int64_t i = 0; i < num_tokens; ++i) {
    state_->tokens.Add(tokens[static_cast<size_t>(i)], i, std::max(length, num_tokens));
    if (which == LogitsOf::kAll || i + 1 == num_tokens) state_->tokens.WantLogits();
  }
  KVICK_ASSIGN_OR_RETURN(
      UncachedKv kv,
      UncachedKv::Create(state_->attention, state_->model->info.num_layers, num_tokens));
  return state_->RunPass(kv, logits);
}

DType ModelRunner::kv_dtype() const { return state_->attention.dtype; }
std::string ModelRunner::numerics() const { return NumericsName(state_->forward->exec()); }
std::string_view ModelRunner::isa() const { return IsaName(state_->forward->exec().isa); }
int ModelRunner::num_threads() const { return state_->forward->exec().num_threads; }

}  // namespace kvick
