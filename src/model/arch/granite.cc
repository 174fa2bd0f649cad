// Granite 3, dense: a Llama with four multipliers.
// Source  transformers' modeling_granite.py

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

constexpr FieldName kEmbedding{"embedding_scale", "embedding_multiplier"};
constexpr FieldName kResidual{"residual_scale", "residual_multiplier"};
constexpr FieldName kAttention{"attention.scale", "attention_multiplier"};
constexpr FieldName kLogits{"logit_scale", "logits_scaling"};

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(spec.embedding_scale, fields.FloatOr(kEmbedding, kScaleRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(spec.residual_scale, fields.FloatOr(kResidual, kScaleRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(spec.attention_scale, fields.FloatOr(kAttention, kScaleRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(const double divisor, fields.FloatOr(kLogits, kScaleRange, 1.0));
  spec.logits_scale = 1.0 / divisor;
  return {};
}

}  // namespace

constexpr Architecture kGranite{
    .gguf_name = "granite",
    .hf_name = "granite",
    .gguf_pairs = RopePairs::kInterleaved,
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
