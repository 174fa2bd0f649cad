#include "model/weights.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/check.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

// One of the matrices that a tensor holds one above the other, and where it goes.
struct LinearPart {
  int64_t num_rows;
  MatrixView LayerWeights::*matrix;
  std::vector<float> LayerWeights::*bias;
};

// A tensor of a layer: its name, and the matrices in it.
struct LinearSpec {
  std::string_view name;
  int64_t num_cols;
  bool needs_bias;
  std::vector<LinearPart> parts;
};

// A norm of a layer: its name, its width, and where it goes.
struct NormSpec {
  std::string_view name;
  int64_t width;
  std::vector<float> LayerWeights::*weight;
};

std::vector<LinearSpec> LayerLinears(const ModelSpec& spec, const LayerSpec& layer) {
  using L = LayerWeights;
  const TensorNames& names = spec.tensor_names;
  const int64_t hidden = spec.hidden_size, inner = spec.intermediate_size;
  const int64_t q_size = spec.num_heads * spec.head_dim;
  const int64_t kv_size = spec.num_kv_heads * spec.head_dim;
  const LinearPart q{q_size, &L::q, &L::q_bias}, k{kv_size, &L::k, &L::k_bias},
      v{kv_size, &L::v, &L::v_bias}, gate{inner, &L::gate, &L::gate_bias},
      up{inner, &L::up, &L::up_bias};
  std::vector<LinearSpec> linears;
  if (spec.fused_qkv) {
    linears.push_back({names.qkv, hidden, layer.qkv_bias, {q, k, v}});
  } else {
    linears.push_back({names.q, hidden, layer.qkv_bias, {q}});
    linears.push_back({names.k, hidden, layer.qkv_bias, {k}});
    linears.push_back({names.v, hidden, layer.qkv_bias, {v}});
  }
  linears.push_back({names.o, q_size, layer.o_bias, {{hidden, &L::o, &L::o_bias}}});
  if (spec.fused_gate_up) {
    linears.push_back({names.gate_up, hidden, layer.mlp_bias, {gate, up}});
  } else {
    linears.push_back({names.gate, hidden, layer.mlp_bias, {gate}});
    linears.push_back({names.up, hidden, layer.mlp_bias, {up}});
  }
  linears.push_back({names.down, inner, layer.mlp_bias, {{hidden, &L::down, &L::down_bias}}});
  return linears;
}

// "F32, F16, ... or IQ4_XS"
std::string SupportedTypes() {
  std::vector<std::string_view> names;
  for (const WeightFormat& format : AllWeightFormats()) names.push_back(format.gguf_name);
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

std::vector<NormSpec> LayerNorms(const ModelSpec& spec, const LayerSpec& layer) {
  using L = LayerWeights;
  const TensorNames& names = spec.tensor_names;
  std::vector<NormSpec> norms;
  if (layer.norm_before) {
    norms.push_back({names.attention_norm, spec.hidden_size, &L::attention_norm});
    norms.push_back({names.ffn_norm, spec.hidden_size, &L::ffn_norm});
  }
  if (layer.norm_after) {
    norms.push_back({names.attention_post_norm, spec.hidden_size, &L::attention_post_norm});
    norms.push_back({names.ffn_post_norm, spec.hidden_size, &L::ffn_post_norm});
  }
  if (layer.qk_norm != QkNorm::kNone) {
    const bool is_wide = layer.qk_norm == QkNorm::kWidth;
    norms.push_back({names.q_norm, spec.head_dim * (is_wide ? spec.num_heads : 1), &L::q_norm});
    norms.push_back({names.k_norm, spec.head_dim * (is_wide ? spec.num_kv_heads : 1), &L::k_norm});
  }
  return norms;
}

// Finds tensors, and remembers which.
class Binder {
 public:
  Binder(const WeightSource& source, const ModelSpec& spec) : source_(source), spec_(spec) {}

  Result<ModelWeights> Bind();

 private:
  Result<const TensorInfo*> FindTensor(const std::string& name, std::span<const int64_t> shape);
  Result<MatrixView> FindMatrix(const std::string& name, int64_t num_rows, int64_t num_cols);
  Result<std::vector<float>> CopyVector(const std::string& name, int64_t num_elements);
  Result<std::vector<float>> CopyNorm(const std::string& name, int64_t num_elements);
  Status BindLinear(const std::string& prefix, const LinearSpec& linear, LayerWeights& layer);
  Result<LayerWeights> BindLayer(int64_t layer_idx);
  Status BindVocabulary(ModelWeights& weights);
  Status CheckCopiedSize() const;
  Status CheckAllAreUsed() const;

  const WeightSource& source_;
  const ModelSpec& spec_;
  std::set<const TensorInfo*> used_;
};

// A tensor of that name, shape and of a type that kvick computes with.
Result<const TensorInfo*> Binder::FindTensor(const std::string& name,
                                             std::span<const int64_t> shape) {
  const TensorInfo* tensor = source_.tensors.Find(name);
  if (tensor == nullptr) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {} is missing", source_.name, name);
  }
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {}: expected the shape {}, got {}", source_.name,
                name, ShapeText(shape), ShapeText(tensor->shape));
  }
  if (tensor->format == nullptr) {
    return Fail(ErrorCode::kUnsupported, "{}: tensor {}: expected {}, got {}", source_.name, name,
                SupportedTypes(), tensor->type_name);
  }
  used_.insert(tensor);
  return tensor;
}

Result<MatrixView> Binder::FindMatrix(const std::string& name, int64_t num_rows, int64_t num_cols) {
  KVICK_ASSIGN_OR_RETURN(const TensorInfo* tensor,
                         FindTensor(name, std::array{num_rows, num_cols}));
  return MatrixView{tensor->data, tensor->format->type, num_rows, num_cols};
}

Result<std::vector<float>> Binder::CopyVector(const std::string& name, int64_t num_elements) {
  KVICK_ASSIGN_OR_RETURN(const TensorInfo* tensor, FindTensor(name, std::array{num_elements}));
  std::vector<float> values(static_cast<size_t>(num_elements));
  DecodeWeights(tensor->format->type, tensor->data, num_elements, values.data());
  return values;
}

Result<std::vector<float>> Binder::CopyNorm(const std::string& name, int64_t num_elements) {
  KVICK_ASSIGN_OR_RETURN(std::vector<float> weight, CopyVector(name, num_elements));
  if (spec_.norm_weights == NormWeights::kPlusOne) {
    for (float& element : weight) element += 1.0f;
  }
  return weight;
}

Status Binder::BindLinear(const std::string& prefix, const LinearSpec& linear,
                          LayerWeights& layer) {
  const std::string name = fmt::format("{}{}", prefix, linear.name);
  int64_t num_rows = 0;
  for (const LinearPart& part : linear.parts) num_rows += part.num_rows;
  KVICK_ASSIGN_OR_RETURN(const MatrixView whole,
                         FindMatrix(name + ".weight", num_rows, linear.num_cols));
  const int64_t row_bytes = RowBytes(whole);
  int64_t row = 0;
  for (const LinearPart& part : linear.parts) {
    layer.*part.matrix = {whole.data + row * row_bytes, whole.type, part.num_rows, whole.num_cols};
    row += part.num_rows;
  }
  const std::string bias_name = name + ".bias";
  if (!linear.needs_bias && source_.tensors.Find(bias_name) == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const std::vector<float> bias, CopyVector(bias_name, num_rows));
  auto begin = bias.begin();
  for (const LinearPart& part : linear.parts) {
    (layer.*part.bias).assign(begin, begin + part.num_rows);
    begin += part.num_rows;
  }
  return {};
}

Result<LayerWeights> Binder::BindLayer(int64_t layer_idx) {
  const LayerSpec& spec = spec_.layers[static_cast<size_t>(layer_idx)];
  const std::string prefix = fmt::format("{}{}.", spec_.tensor_names.layer_prefix, layer_idx);
  LayerWeights layer;
  for (const LinearSpec& linear : LayerLinears(spec_, spec)) {
    KVICK_RETURN_IF_ERROR(BindLinear(prefix, linear, layer));
  }
  for (const NormSpec& norm : LayerNorms(spec_, spec)) {
    KVICK_ASSIGN_OR_RETURN(layer.*norm.weight,
                           CopyNorm(fmt::format("{}{}.weight", prefix, norm.name), norm.width));
  }
  return layer;
}

// Binds the embedding and the output, of which a tied model needs only one.
Status Binder::BindVocabulary(ModelWeights& weights) {
  const auto find = [&](const std::string& name) {
    return FindMatrix(name, spec_.vocab_size, spec_.hidden_size);
  };
  const std::string embedding = fmt::format("{}.weight", spec_.tensor_names.embedding);
  const std::string output = fmt::format("{}.weight", spec_.tensor_names.output);
  const bool has_output = source_.tensors.Find(output) != nullptr;
  if (!has_output && !spec_.tie_word_embeddings) {
    return Fail(ErrorCode::kCorrupt,
                "{}: tensor {} is missing: expected it, or tie_word_embeddings true in config.json",
                source_.name, output);
  }
  const bool is_output_alone =
      has_output && spec_.tie_word_embeddings && source_.tensors.Find(embedding) == nullptr;
  KVICK_ASSIGN_OR_RETURN(weights.embedding, find(is_output_alone ? output : embedding));
  KVICK_ASSIGN_OR_RETURN(weights.output, find(has_output ? output : embedding));
  return {};
}

// Norms and biases are the weights that are copied. In a file that is a hole of any size, they must
// not take memory without bound: the largest models have 17 MB of them.
Status Binder::CheckCopiedSize() const {
  constexpr int64_t kMaxElements = int64_t{1} << 26;
  int64_t num_elements = 0;  // limits of the spec: no overflow
  for (const LayerSpec& layer : spec_.layers) {
    for (const LinearSpec& linear : LayerLinears(spec_, layer)) {
      for (const LinearPart& part : linear.parts) num_elements += part.num_rows;
    }
    for (const NormSpec& norm : LayerNorms(spec_, layer)) num_elements += norm.width;
  }
  if (num_elements <= kMaxElements) return {};
  return Fail(ErrorCode::kUnsupported,
              "{}: expected at most {} elements of norms and biases, got {}", source_.name,
              kMaxElements, num_elements);
}

// What else is in the file would change the numbers, if it were known what it does. Exempt are the
// rope's numbers, of which the spec is made.
Status Binder::CheckAllAreUsed() const {
  const auto is_rope = [](std::string_view name) {
    return name.starts_with("rope_freqs.") || name.starts_with("rope_factors_") ||
           name.ends_with("rotary_emb.inv_freq");
  };
  for (const TensorInfo& tensor : source_.tensors.all()) {
    if (used_.contains(&tensor) || tensor.num_bytes == 0 || is_rope(tensor.name)) continue;
    return Fail(ErrorCode::kUnsupported, "{}: tensor {}: expected a tensor of {}, got another",
                source_.name, Quoted(tensor.name), spec_.architecture);
  }
  return {};
}

Result<ModelWeights> Binder::Bind() {
  ModelWeights weights;
  KVICK_RETURN_IF_ERROR(CheckCopiedSize());
  KVICK_RETURN_IF_ERROR(BindVocabulary(weights));
  KVICK_ASSIGN_OR_RETURN(
      weights.final_norm,
      CopyNorm(fmt::format("{}.weight", spec_.tensor_names.final_norm), spec_.hidden_size));
  // Grows only as tensors are found: a number of layers alone makes no allocation.
  for (int64_t layer_idx = 0; layer_idx < spec_.num_layers(); ++layer_idx) {
    KVICK_ASSIGN_OR_RETURN(LayerWeights layer, BindLayer(layer_idx));
    weights.layers.push_back(std::move(layer));
  }
  KVICK_RETURN_IF_ERROR(CheckAllAreUsed());
  return weights;
}

}  // namespace

Result<ModelWeights> BindWeights(const WeightSource& source, const ModelSpec& spec) {
  return Binder(source, spec).Bind();
}

}  // namespace kvick
