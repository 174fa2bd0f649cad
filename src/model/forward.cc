#include "model/forward.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "ops/add.h"
#include "ops/glu.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/scale.h"

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
    for (const auto matrix : LayerWeights::kMatrices) include(layer.*matrix);
  }
  include(weights.output);
  return num_bytes;
}

}  // namespace

AttentionConfig AttentionOf(const ModelSpec& spec, DType kv_dtype, const ExecOptions& exec) {
  AttentionConfig config;
  config.num_heads = spec.num_heads;
  config.num_kv_heads = spec.num_kv_heads;
  config.head_dim = spec.head_dim;
  config.dtype = kv_dtype;
  config.scale = static_cast<float>(spec.attention_scale);
  config.exec = exec;
  config.soft_cap = static_cast<float>(spec.score_soft_cap);
  config.windows = spec.Windows();
  return config;
}

Forward::Forward(const ModelFile& file, const Exec& exec, int64_t max_tokens)
    : spec_(file.spec()), weights_(file.weights()), exec_(exec), max_tokens_(max_tokens) {
  for (const RopeSpec& rope : spec_.ropes) {
    const bool has_long = rope.scaling == RopeSpec::Scaling::kLongRope;
    const int64_t switch_length =
        has_long ? rope.original_max_positions : std::numeric_limits<int64_t>::max();
    ropes_.push_back(
        {RopeInverseFrequencies(rope),
         has_long ? RopeInverseFrequencies(rope, switch_length + 1) : std::vector<double>(),
         switch_length});
  }
}

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
  const ModelSpec& c = spec_;
  const int64_t q_width = c.num_heads * c.head_dim, kv_width = c.num_kv_heads * c.head_dim;
  std::vector<std::pair<float**, int64_t>> buffers = {{&x_, c.hidden_size},
                                                      {&normed_, c.hidden_size},
                                                      {&block_, c.hidden_size},
                                                      {&q_, q_width},
                                                      {&k_, kv_width},
                                                      {&v_, kv_width},
                                                      {&attended_, q_width},
                                                      {&gate_, c.intermediate_size},
                                                      {&up_, c.intermediate_size}};
  for (Rope& rope : ropes_) {
    const auto num_pairs = static_cast<int64_t>(rope.frequencies.size());
    buffers.push_back({&rope.cos, num_pairs});
    buffers.push_back({&rope.sin, num_pairs});
  }
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
  KVICK_CHECK(step.lengths.size() == step.tokens.size());
  KVICK_CHECK(static_cast<int64_t>(step.logits.size()) ==
              static_cast<int64_t>(step.output_rows.size()) * spec_.vocab_size);
  RotateTables(step);
  Embed(step.tokens);
  for (int64_t layer = 0; layer < spec_.num_layers(); ++layer) {
    KVICK_RETURN_IF_ERROR(AttentionBlock(layer, step));
    FeedForwardBlock(layer, num_tokens);
  }
  Logits(step);
  return {};
}

// Tokens that are next to each other and take the same frequencies are computed together.
void Forward::RotateTables(const ForwardStep& step) {
  const size_t num_tokens = step.positions.size();
  for (size_t i = 0; i < ropes_.size(); ++i) {
    const Rope& rope = ropes_[i];
    const auto is_long = [&](size_t token) { return step.lengths[token] > rope.switch_length; };
    size_t begin = 0;
    while (begin < num_tokens) {
      size_t end = begin + 1;
      while (end < num_tokens && is_long(end) == is_long(begin)) ++end;
      const size_t entry = begin * rope.frequencies.size();
      ComputeRopeTable({is_long(begin) ? rope.long_frequencies : rope.frequencies,
                        step.positions.subspan(begin, end - begin), spec_.ropes[i].magnitude,
                        rope.cos + entry, rope.sin + entry});
      begin = end;
    }
  }
}

void Forward::Embed(std::span<const int32_t> tokens) {
  const MatrixView& table = weights_.embedding;
  const int64_t row_bytes = RowBytes(table);
  for (size_t t = 0; t < tokens.size(); ++t) {
    DecodeWeights(table.type, table.data + tokens[t] * row_bytes, spec_.hidden_size,
                  x_ + static_cast<int64_t>(t) * spec_.hidden_size);
  }
  if (spec_.embedding_scale == 1.0) return;
  ScaleInPlace(exec_, {x_, tokens.size() * static_cast<size_t>(spec_.hidden_size)},
               static_cast<float>(spec_.embedding_scale));
}

Status Forward::AttentionBlock(int64_t layer, const ForwardStep& step) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const auto num_tokens = static_cast<int64_t>(step.tokens.size());
  const int64_t heads = spec_.num_heads, kv_heads = spec_.num_kv_heads, dim = spec_.head_dim;
  const float* in = Norm(w.attention_norm, num_tokens, x_, normed_);
  ProjectQueriesAndKeys(layer, num_tokens, in);
  Project({w.v, w.v_bias, Activations::kSplit}, num_tokens, in, v_);
  KVICK_RETURN_IF_ERROR(step.kv->Write(layer, DenseF32(k_, {num_tokens, kv_heads, dim}),
                                       DenseF32(v_, {num_tokens, kv_heads, dim})));
  KVICK_RETURN_IF_ERROR(attention_->Run(layer, step.kv->queries(),
                                        DenseF32(q_, {num_tokens, heads, dim}),
                                        DenseF32(attended_, {num_tokens, heads, dim})));
  Project({w.o, w.o_bias}, num_tokens, attended_, block_);
  AddBranch(w.attention_post_norm, num_tokens);
  return {};
}

// What is attended to is decided here, and small differences grow: of all projections q, k and v
// gain most from the second bf16 (docs/numerics.md), and they are a tenth of the multiplications.
void Forward::ProjectQueriesAndKeys(int64_t layer, int64_t num_tokens, const float* in) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const LayerSpec& spec = spec_.layers[static_cast<size_t>(layer)];
  struct Part {
    Projection projection;
    const std::vector<float>& norm;
    int64_t num_heads;
    float* out;
  };
  for (const Part& part :
       {Part{{w.q, w.q_bias, Activations::kSplit}, w.q_norm, spec_.num_heads, q_},
        Part{{w.k, w.k_bias, Activations::kSplit}, w.k_norm, spec_.num_kv_heads, k_}}) {
    Project(part.projection, num_tokens, in, part.out);
    if (spec.qk_norm != QkNorm::kNone) {
      const auto width = static_cast<int64_t>(part.norm.size());
      const int64_t num_rows = num_tokens * part.num_heads * spec_.head_dim / width;
      RmsNorm(exec_, {part.out, part.norm.data(), static_cast<float>(spec_.rms_norm_eps), num_rows,
                      width, part.out});
    }
    if (spec.rope == LayerSpec::kNoRope) continue;
    const Rope& rope = ropes_[static_cast<size_t>(spec.rope)];
    const RopeSpec& rotation = spec_.ropes[static_cast<size_t>(spec.rope)];
    ApplyRope(exec_, {part.out, rope.cos, rope.sin, num_tokens, part.num_heads, spec_.head_dim,
                      rotation.num_rotated, rotation.pairs});
  }
}

void Forward::FeedForwardBlock(int64_t layer, int64_t num_tokens) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const float* in = Norm(w.ffn_norm, num_tokens, x_, normed_);
  Project({w.gate, w.gate_bias}, num_tokens, in, gate_);
  Project({w.up, w.up_bias}, num_tokens, in, up_);
  const auto num_gates = static_cast<size_t>(num_tokens * spec_.intermediate_size);
  Glu(exec_,
      {spec_.layers[static_cast<size_t>(layer)].activation, {gate_, num_gates}, {up_, num_gates}});
  Project({w.down, w.down_bias}, num_tokens, gate_, block_);
  AddBranch(w.ffn_post_norm, num_tokens);
}

// Rows of no output are skipped: at prefill the vocabulary is the widest matrix.
void Forward::Logits(const ForwardStep& step) {
  const int64_t width = spec_.hidden_size;
  for (size_t i = 0; i < step.output_rows.size(); ++i) {  // ascending: row i is read at or after i
    std::copy_n(x_ + step.output_rows[i] * width, width, x_ + static_cast<int64_t>(i) * width);
  }
  const auto num_rows = static_cast<int64_t>(step.output_rows.size());
  const float* in = Norm(weights_.final_norm, num_rows, x_, normed_);
  Project({weights_.output, kNoBias}, num_rows, in, step.logits.data());
  if (spec_.logits_scale != 1.0) {
    ScaleInPlace(exec_, step.logits, static_cast<float>(spec_.logits_scale));
  }
  if (spec_.logits_soft_cap != 0.0) {
    SoftCapInPlace(exec_, step.logits, static_cast<float>(spec_.logits_soft_cap));
  }
}

const float* Forward::Norm(const std::vector<float>& weight, int64_t num_tokens, const float* in,
                           float* out) {
  if (weight.empty()) return in;
  RmsNorm(exec_, {in, weight.data(), static_cast<float>(spec_.rms_norm_eps), num_tokens,
                  spec_.hidden_size, out});
  return out;
}

// Adds what a branch gives to the residual stream.
void Forward::AddBranch(const std::vector<float>& post_norm, int64_t num_tokens) {
  Norm(post_norm, num_tokens, block_, block_);
  const auto num_elements = static_cast<size_t>(num_tokens * spec_.hidden_size);
  AddInPlace(exec_, {x_, num_elements}, {block_, num_elements},
             static_cast<float>(spec_.residual_scale));
}

void Forward::Project(const Projection& p, int64_t num_tokens, const float* in, float* out) {
  const float* bias = p.bias.empty() ? nullptr : p.bias.data();
  const Activations activations =
      exec_.precision == Precision::kHigh ? Activations::kSplit : p.activations;
  Linear(exec_, {p.w, bias, in, num_tokens, out, activations}, linear_scratch_);
}

}  // namespace kvick
