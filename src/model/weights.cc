#include "model/weights.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/dtype.h"

namespace kvick {
namespace {

// A format's names, without ".weight" and ".bias"; those of a layer follow layer_prefix and "N.".
struct NameScheme {
  std::string_view embedding, final_norm, output, layer_prefix;
  std::string_view attention_norm, q, k, v, o;
  std::string_view ffn_norm, gate, up, down;
};

constexpr NameScheme kGgufNames{
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .output = "output",
    .layer_prefix = "blk.",
    .attention_norm = "attn_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .o = "attn_output",
    .ffn_norm = "ffn_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
};

constexpr NameScheme kHuggingFaceNames{
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .output = "lm_head",
    .layer_prefix = "model.layers.",
    .attention_norm = "input_layernorm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .o = "self_attn.o_proj",
    .ffn_norm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
};

// A matrix of a layer and its bias: name, shape, and where they go.
struct LinearSpec {
  std::string_view name;
  int64_t num_rows;
  int64_t num_cols;
  bool needs_bias;
  MatrixView LayerWeights::*matrix;
  std::vector<float> LayerWeights::*bias;
};

std::array<LinearSpec, 7> LayerLinears(const NameScheme& names, const LlamaConfig& config) {
  using L = LayerWeights;
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t q_size = config.num_heads * config.head_dim;
  const int64_t kv_size = config.num_kv_heads * config.head_dim;
  return {{
      {names.q, q_size, hidden, config.attention_bias, &L::q, &L::q_bias},
      {names.k, kv_size, hidden, config.attention_bias, &L::k, &L::k_bias},
      {names.v, kv_size, hidden, config.attention_bias, &L::v, &L::v_bias},
      {names.o, hidden, q_size, config.attention_bias, &L::o, &L::o_bias},
      {names.gate, inner, hidden, config.mlp_bias, &L::gate, &L::gate_bias},
      {names.up, inner, hidden, config.mlp_bias, &L::up, &L::up_bias},
      {names.down, hidden, inner, config.mlp_bias, &L::down, &L::down_bias},
  }};
}

// "F32, F16, ... or IQ4_XS"
std::string SupportedTypes() {
  std::vector<std::string_view> names;
  for (const WeightFormat& format : AllWeightFormats()) names.push_back(format.gguf_name);
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

// A tensor of that name, shape and of a type that kvick computes with.
Result<const TensorInfo*> FindTensor(const WeightSource& source, const std::string& name,
                                     std::span<const int64_t> shape) {
  const TensorInfo* tensor = source.tensors.Find(name);
  if (tensor == nullptr) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {} is missing", source.name, name);
  }
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {}: expected the shape {}, got {}", source.name,
                name, ShapeText(shape), ShapeText(tensor->shape));
  }
  if (tensor->format == nullptr) {
    return Fail(ErrorCode::kUnsupported, "{}: tensor {}: expected {}, got {}", source.name, name,
                SupportedTypes(), tensor->type_name);
  }
  return tensor;
}

Result<MatrixView> FindMatrix(const WeightSource& source, const std::string& name, int64_t num_rows,
                              int64_t num_cols) {
  KVICK_ASSIGN_OR_RETURN(const TensorInfo* tensor,
                         FindTensor(source, name, std::array{num_rows, num_cols}));
  return MatrixView{tensor->data, tensor->format->type, num_rows, num_cols};
}

Result<std::vector<float>> CopyVector(const WeightSource& source, const std::string& name,
                                      int64_t num_elements) {
  KVICK_ASSIGN_OR_RETURN(const TensorInfo* tensor,
                         FindTensor(source, name, std::array{num_elements}));
  std::vector<float> values(static_cast<size_t>(num_elements));
  DecodeWeights(tensor->format->type, tensor->data, num_elements, values.data());
  return values;
}

Status BindLinear(const WeightSource& source, const std::string& prefix, const LinearSpec& spec,
                  LayerWeights& layer) {
  const std::string name = fmt::format("{}{}", prefix, spec.name);
  KVICK_ASSIGN_OR_RETURN(layer.*spec.matrix,
                         FindMatrix(source, name + ".weight", spec.num_rows, spec.num_cols));
  const std::string bias_name = name + ".bias";
  if (!spec.needs_bias && source.tensors.Find(bias_name) == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(layer.*spec.bias, CopyVector(source, bias_name, spec.num_rows));
  return {};
}

Result<LayerWeights> BindLayer(const WeightSource& source, const NameScheme& names,
                               const LlamaConfig& config, int64_t layer_idx) {
  const std::string prefix = fmt::format("{}{}.", names.layer_prefix, layer_idx);
  LayerWeights layer;
  for (const LinearSpec& spec : LayerLinears(names, config)) {
    KVICK_RETURN_IF_ERROR(BindLinear(source, prefix, spec, layer));
  }
  KVICK_ASSIGN_OR_RETURN(
      layer.attention_norm,
      CopyVector(source, fmt::format("{}{}.weight", prefix, names.attention_norm),
                 config.hidden_size));
  KVICK_ASSIGN_OR_RETURN(
      layer.ffn_norm,
      CopyVector(source, fmt::format("{}{}.weight", prefix, names.ffn_norm), config.hidden_size));
  return layer;
}

// Binds the embedding and the output, of which a tied model needs only one.
Status BindVocabulary(const WeightSource& source, const NameScheme& names,
                      const LlamaConfig& config, ModelWeights& weights) {
  const auto find = [&](const std::string& name) {
    return FindMatrix(source, name, config.vocab_size, config.hidden_size);
  };
  const std::string embedding = fmt::format("{}.weight", names.embedding);
  const std::string output = fmt::format("{}.weight", names.output);
  const bool has_output = source.tensors.Find(output) != nullptr;
  if (!has_output && !config.tie_word_embeddings) {
    return Fail(ErrorCode::kCorrupt,
                "{}: tensor {} is missing: expected it, or tie_word_embeddings true in config.json",
                source.name, output);
  }
  const bool is_output_alone =
      has_output && config.tie_word_embeddings && source.tensors.Find(embedding) == nullptr;
  KVICK_ASSIGN_OR_RETURN(weights.embedding, find(is_output_alone ? output : embedding));
  KVICK_ASSIGN_OR_RETURN(weights.output, find(has_output ? output : embedding));
  return {};
}

// Norms and biases are the weights that are copied. In a file that is a hole of any size, they must
// not take memory without bound: the largest Llamas have 17 MB of them.
Status CheckCopiedSize(const WeightSource& source, const LlamaConfig& config) {
  constexpr int64_t kMaxElements = int64_t{1} << 26;
  int64_t width = 2 * config.hidden_size;  // limits of the config: no overflow
  for (const LinearSpec& spec : LayerLinears(kGgufNames, config)) width += spec.num_rows;
  if (width * config.num_layers <= kMaxElements) return {};
  return Fail(ErrorCode::kUnsupported,
              "{}: expected at most {} elements of norms and biases, got {}", source.name,
              kMaxElements, width * config.num_layers);
}

}  // namespace

Result<ModelWeights> BindWeights(const WeightSource& source, const LlamaConfig& config) {
  const NameScheme& names = source.names == WeightNames::kGguf ? kGgufNames : kHuggingFaceNames;
  ModelWeights weights;
  KVICK_RETURN_IF_ERROR(CheckCopiedSize(source, config));
  KVICK_RETURN_IF_ERROR(BindVocabulary(source, names, config, weights));
  KVICK_ASSIGN_OR_RETURN(
      weights.final_norm,
      CopyVector(source, fmt::format("{}.weight", names.final_norm), config.hidden_size));
  // Grows only as tensors are found: a number of layers alone makes no allocation.
  for (int64_t layer_idx = 0; layer_idx < config.num_layers; ++layer_idx) {
    KVICK_ASSIGN_OR_RETURN(LayerWeights layer, BindLayer(source, names, config, layer_idx));
    weights.layers.push_back(std::move(layer));
  }
  return weights;
}

}  // namespace kvick
