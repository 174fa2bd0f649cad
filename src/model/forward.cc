#include "model/forward.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "ops/add.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/swiglu.h"

namespace kvick {
namespace {

constexpr int64_t kAlignment = 64;
const std::vector<float> kNoBias;

int64_t LinearScratch(const Exec& exec, const ModelWeights& weights, int64_t max_tokens) {
  int64_t num_bytes = 0;
  const auto include = [&](const MatrixView& w) {
    num_bytes = std::max(num_bytes, LinearScratchBytes(exec, w.type, max_tokens, w.num_cols));
  };
  for (const LayerWeights& layer : weights.layers) {
    for (const MatrixView* w :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      include(*w);
    }
  }
  include(weights.output);
  return num_bytes;
}

}  // namespace

Forward::Forward(const ModelFile& file, const Exec& exec, int64_t max_tokens)
    : config_(file.config()),
      weights_(file.weights()),
      inverse_frequencies_(RopeInverseFrequencies(file.config())),
      exec_(exec),
      max_tokens_(max_tokens) {}

Result<std::unique_ptr<Forward>> Forward::Create(const ModelFile& file,
                                                 const AttentionConfig& attention,
                                                 int64_t max_tokens) {
  KVICK_ASSIGN_OR_RETURN(const Exec exec, MakeExec(attention.exec));
  KVICK_ASSIGN_OR_RETURN(auto attend, Attention::Create(attention));
  auto forward = std::unique_ptr<Forward>(new Forward(file, exec, max_tokens));
  forward->attention_ = std::move(attend);
  KVICK_RETURN_IF_ERROR(forward->Allocate());
  return forward;
}

// One mapping for all buffers: the first pass counts, the second hands out.
Status Forward::Allocate() {
  const LlamaConfig& c = config_;
  const int64_t q_width = c.num_heads * c.head_dim, kv_width = c.num_kv_heads * c.head_dim;
  const std::pair<float**, int64_t> buffers[] = {{&x_, c.hidden_size},
                                                 {&normed_, c.hidden_size},
                                                 {&block_, c.hidden_size},
                                                 {&q_, q_width},
                                                 {&k_, kv_width},
                                                 {&v_, kv_width},
                                                 {&attended_, q_width},
                                                 {&gate_, c.intermediate_size},
                                                 {&up_, c.intermediate_size},
                                                 {&cos_, c.head_dim / 2},
                                                 {&sin_, c.head_dim / 2}};
  const auto buffer_bytes = [this](int64_t width) {
    return CheckedProduct({max_tokens_, width, static_cast<int64_t>(sizeof(float))});
  };
  int64_t total = 0;
  for (const auto& [pointer, width] : buffers) {
    const auto num_bytes = buffer_bytes(width);
    if (!num_bytes || *num_bytes > MappedRegion::kMaxBytes - total) {
      return Fail(ErrorCode::kExhausted,
                  "model: expected memory for {} tokens in one pass, got less", max_tokens_);
    }
    total += RoundUp(*num_bytes, kAlignment);
  }
  const int64_t scratch_bytes = LinearScratch(exec_, weights_, max_tokens_);
  KVICK_ASSIGN_OR_RETURN(
      memory_, MappedRegion::Create(total + scratch_bytes + kAlignment, Backing::kOnDemand));
  std::byte* next = memory_.data();
  for (const auto& [pointer, width] : buffers) {
    *pointer = reinterpret_cast<float*>(next);
    next += RoundUp(*buffer_bytes(width), kAlignment);
  }
  linear_scratch_ = {next, static_cast<size_t>(scratch_bytes)};
  return {};
}

Status Forward::Run(const ForwardStep& step) {
  const auto num_tokens = static_cast<int64_t>(step.tokens.size());
  KVICK_CHECK(num_tokens <= max_tokens_ && step.positions.size() == step.tokens.size());
  KVICK_CHECK(static_cast<int64_t>(step.logits.size()) ==
              static_cast<int64_t>(step.output_rows.size()) * config_.vocab_size);
  ComputeRopeTable({inverse_frequencies_, step.positions, cos_, sin_});
  Embed(step.tokens);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    KVICK_RETURN_IF_ERROR(AttentionBlock(layer, step));
    FeedForwardBlock(layer, num_tokens);
  }
  Logits(step);
  return {};
}

void Forward::Embed(std::span<const int32_t> tokens) {
  const MatrixView& table = weights_.embedding;
  const int64_t row_bytes = RowBytes(table);
  for (size_t t = 0; t < tokens.size(); ++t) {
    DecodeWeights(table.type, table.data + tokens[t] * row_bytes, config_.hidden_size,
                  x_ + static_cast<int64_t>(t) * config_.hidden_size);
  }
}

Status Forward::AttentionBlock(int64_t layer, const ForwardStep& step) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const auto num_tokens = static_cast<int64_t>(step.tokens.size());
  const int64_t heads = config_.num_heads, kv_heads = config_.num_kv_heads, dim = config_.head_dim;
  Norm(w.attention_norm, num_tokens);
  // What is attended to is decided here, and small differences grow: of all projections these gain
  // most from the second bf16 (docs/numerics.md), and they are a tenth of the multiplications.
  Project({w.q, w.q_bias, Activations::kSplit}, num_tokens, normed_, q_);
  Project({w.k, w.k_bias, Activations::kSplit}, num_tokens, normed_, k_);
  Project({w.v, w.v_bias, Activations::kSplit}, num_tokens, normed_, v_);
  ApplyRope(exec_, {q_, cos_, sin_, num_tokens, heads, dim, config_.rope.pairs});
  ApplyRope(exec_, {k_, cos_, sin_, num_tokens, kv_heads, dim, config_.rope.pairs});
  KVICK_RETURN_IF_ERROR(step.kv->Write(layer, DenseF32(k_, {num_tokens, kv_heads, dim}),
                                       DenseF32(v_, {num_tokens, kv_heads, dim})));
  KVICK_RETURN_IF_ERROR(attention_->Run(layer, step.kv->queries(),
                                        DenseF32(q_, {num_tokens, heads, dim}),
                                        DenseF32(attended_, {num_tokens, heads, dim})));
  Project({w.o, w.o_bias}, num_tokens, attended_, block_);
  const auto num_elements = static_cast<size_t>(num_tokens * config_.hidden_size);
  AddInPlace(exec_, {x_, num_elements}, {block_, num_elements});
  return {};
}

void Forward::FeedForwardBlock(int64_t layer, int64_t num_tokens) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Norm(w.ffn_norm, num_tokens);
  Project({w.gate, w.gate_bias}, num_tokens, normed_, gate_);
  Project({w.up, w.up_bias}, num_tokens, normed_, up_);
  const auto num_gates = static_cast<size_t>(num_tokens * config_.intermediate_size);
  SwiGlu(exec_, {gate_, num_gates}, {up_, num_gates});
  Project({w.down, w.down_bias}, num_tokens, gate_, block_);
  const auto num_elements = static_cast<size_t>(num_tokens * config_.hidden_size);
  AddInPlace(exec_, {x_, num_elements}, {block_, num_elements});
}

// Rows of no output are skipped: at prefill the vocabulary is the widest matrix.
void Forward::Logits(const ForwardStep& step) {
  const int64_t width = config_.hidden_size;
  for (size_t i = 0; i < step.output_rows.size(); ++i) {  // ascending: row i is read at or after i
    std::copy_n(x_ + step.output_rows[i] * width, width, x_ + static_cast<int64_t>(i) * width);
  }
  const auto num_rows = static_cast<int64_t>(step.output_rows.size());
  Norm(weights_.final_norm, num_rows);
  Project({weights_.output, kNoBias}, num_rows, normed_, step.logits.data());
}

void Forward::Norm(const std::vector<float>& weight, int64_t num_tokens) {
  RmsNorm(exec_, {x_, weight.data(), static_cast<float>(config_.rms_norm_eps), num_tokens,
                  config_.hidden_size, normed_});
}

void Forward::Project(const Projection& p, int64_t num_tokens, const float* in, float* out) {
  const float* bias = p.bias.empty() ? nullptr : p.bias.data();
  const Activations activations =
      exec_.precision == Precision::kHigh ? Activations::kSplit : p.activations;
  Linear(exec_, {p.w, bias, in, num_tokens, out, activations}, linear_scratch_);
}

}  // namespace kvick
