#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/exec.h"
#include "kvick/model.h"
#include "model/forward.h"
#include "model/kv_target.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

constexpr int64_t kMaxBatchTokens = int64_t{1} << 31;

Status CheckRange(const char* name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return {};
  return Fail(ErrorCode::kInvalidArgument, "model: {} is {}, 1 to {} is possible", name, value,
              most);
}

}  // namespace

struct ModelRunner::State {
  const Model::Parts* model = nullptr;
  AttentionConfig attention;
  std::unique_ptr<Forward> forward;
  std::unique_ptr<CachedKv> cache_target;
  int64_t max_sequences = 0;
  // [max_batch_tokens] each: the step that is being run.
  std::vector<int32_t> tokens;
  std::vector<int64_t> positions;
  std::vector<int32_t> output_rows;

  Status CheckTokens(std::span<const int32_t> ids) const;
  Status CheckCache(const KvCache& cache) const;
  Status CheckSize(int64_t num_tokens, int64_t num_rows, size_t num_logits) const;
  Status RunStep(KvTarget& kv, std::span<float> logits);
};

Status ModelRunner::State::CheckTokens(std::span<const int32_t> ids) const {
  const int64_t vocab_size = model->info.vocab_size;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument, "model: token {} is wanted of a vocabulary of {}",
                  id, vocab_size);
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
              "model: the cache has {} layers, {} kv heads of {} {}; {} layers, {} heads of {} {} "
              "are wanted",
              layout.num_layers, layout.num_kv_heads, layout.head_dim, DTypeName(layout.dtype),
              info.num_layers, info.num_kv_heads, info.head_dim, DTypeName(attention.dtype));
}

Status ModelRunner::State::CheckSize(int64_t num_tokens, int64_t num_rows,
                                     size_t num_logits) const {
  if (num_tokens < 1 || num_tokens > forward->max_tokens()) {
    return Fail(ErrorCode::kInvalidArgument, "model: {} tokens in one pass, 1 to {} are possible",
                num_tokens, forward->max_tokens());
  }
  const int64_t wanted = num_rows * model->info.vocab_size;
  if (static_cast<int64_t>(num_logits) != wanted) {
    return Fail(ErrorCode::kInvalidArgument, "model: room for {} logits, {} are computed",
                num_logits, wanted);
  }
  return {};
}

Status ModelRunner::State::RunStep(KvTarget& kv, std::span<float> logits) {
  return forward->Run({tokens, positions, output_rows, logits, &kv});
}

ModelRunner::ModelRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModelRunner::~ModelRunner() = default;

Result<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model& model,
                                                         const RunnerOptions& options) {
  const ModelInfo& info = model.info();
  KVICK_RETURN_IF_ERROR(CheckRange("max_batch_tokens", options.max_batch_tokens, kMaxBatchTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, kMaxBatchTokens));
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(options.isa, options.num_threads));
  auto state = std::make_unique<State>();
  state->model = &model.parts();
  state->attention.num_heads = info.num_heads;
  state->attention.num_kv_heads = info.num_kv_heads;
  state->attention.head_dim = info.head_dim;
  state->attention.dtype = options.kv_dtype.value_or(info.DefaultKvDType());
  state->attention.isa = IsaName(exec.isa);
  state->attention.num_threads = exec.num_threads;
  KVICK_ASSIGN_OR_RETURN(state->forward, Forward::Create(state->model->file, state->attention,
                                                         options.max_batch_tokens));
  state->max_sequences = options.max_sequences;
  state->cache_target = std::make_unique<CachedKv>(options.max_sequences);
  const auto max_tokens = static_cast<size_t>(options.max_batch_tokens);
  state->tokens.reserve(max_tokens);
  state->positions.reserve(max_tokens);
  state->output_rows.reserve(max_tokens);
  return std::unique_ptr<ModelRunner>(new ModelRunner(std::move(state)));
}

Status ModelRunner::Run(KvCache& cache, std::span<const SequenceChunk> chunks, LogitsOf which,
                        std::span<float> logits) {
  KVICK_RETURN_IF_ERROR(state_->CheckCache(cache));
  if (static_cast<int64_t>(chunks.size()) > state_->max_sequences) {
    return Fail(ErrorCode::kInvalidArgument,
                "model: {} chunks in one pass, at most {} are possible", chunks.size(),
                state_->max_sequences);
  }
  int64_t num_tokens = 0;
  for (const SequenceChunk& chunk : chunks) {
    KVICK_RETURN_IF_ERROR(state_->CheckTokens(chunk.tokens));
    if (static_cast<int64_t>(chunk.tokens.size()) != chunk.plan->num_tokens()) {
      return Fail(ErrorCode::kInvalidArgument, "model: {} tokens for a plan of {}",
                  chunk.tokens.size(), chunk.plan->num_tokens());
    }
    num_tokens += chunk.plan->num_tokens();
  }
  const auto num_rows = which == LogitsOf::kAll ? num_tokens : static_cast<int64_t>(chunks.size());
  KVICK_RETURN_IF_ERROR(state_->CheckSize(num_tokens, num_rows, logits.size()));
  state_->tokens.clear();
  state_->positions.clear();
  state_->output_rows.clear();
  for (const SequenceChunk& chunk : chunks) {
    for (int64_t i = 0; i < chunk.plan->num_tokens(); ++i) {
      const bool is_wanted = which == LogitsOf::kAll || i + 1 == chunk.plan->num_tokens();
      if (is_wanted) state_->output_rows.push_back(static_cast<int32_t>(state_->tokens.size()));
      state_->tokens.push_back(chunk.tokens[static_cast<size_t>(i)]);
      state_->positions.push_back(chunk.plan->position(i));
    }
  }
  state_->cache_target->Begin(cache, chunks);
  return state_->RunStep(*state_->cache_target, logits);
}

Status ModelRunner::RunUncached(std::span<const int32_t> tokens, LogitsOf which,
                                std::span<float> logits) {
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  KVICK_RETURN_IF_ERROR(state_->CheckTokens(tokens));
  KVICK_RETURN_IF_ERROR(
      state_->CheckSize(num_tokens, which == LogitsOf::kAll ? num_tokens : 1, logits.size()));
  state_->tokens.assign(tokens.begin(), tokens.end());
  state_->positions.clear();
  state_->output_rows.clear();
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (which == LogitsOf::kAll || i + 1 == num_tokens) {
      state_->output_rows.push_back(static_cast<int32_t>(i));
    }
    state_->positions.push_back(i);
  }
  UncachedKv fresh(state_->attention, state_->model->info.num_layers, num_tokens);
  return state_->RunStep(fresh, logits);
}

DType ModelRunner::kv_dtype() const { return state_->attention.dtype; }
std::string_view ModelRunner::isa() const { return IsaName(state_->forward->exec().isa); }
int ModelRunner::num_threads() const { return state_->forward->exec().num_threads; }

}  // namespace kvick
