#include "model/arch/gemma.h"

#include <cmath>

#include "base/check.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

constexpr FieldName kQueryScalar{.gguf = {}, .hf = "query_pre_attn_scalar"};
constexpr double kDefaultQueryScalar = 256;

}  // namespace

Status DescribeGemma(const ConfigFields& fields, int64_t layers_of_largest, ModelSpec& spec) {
  if (fields.gguf() == nullptr) spec.norm_weights = NormWeights::kPlusOne;
  for (LayerSpec& layer : spec.layers) {
    layer.norm_after = true;
    layer.activation = Activation::kGeluTanh;
  }
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  double scalar = static_cast<double>(spec.head_dim);
  if (fields.gguf() != nullptr && spec.num_layers() == layers_of_largest) {
    scalar = static_cast<double>(spec.hidden_size) / static_cast<double>(spec.num_heads);
  }
  if (fields.gguf() == nullptr) {
    KVICK_ASSIGN_OR_RETURN(scalar, fields.FloatOr(kQueryScalar, kScaleRange, kDefaultQueryScalar));
  }
  spec.attention_scale = 1.0 / std::sqrt(scalar);
  return {};
}

}  // namespace kvick
