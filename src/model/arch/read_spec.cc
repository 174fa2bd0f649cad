#include "model/arch/read_spec.h"

#include <utility>

#include "base/check.h"
#include "formats/error_source.h"
#include "model/arch/rope_fields.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

constexpr FieldName kNumLayers{"block_count", "num_hidden_layers"};
constexpr FieldName kHiddenSize{"embedding_length", "hidden_size"};
constexpr FieldName kIntermediateSize{"feed_forward_length", "intermediate_size"};
constexpr FieldName kNumHeads{"attention.head_count", "num_attention_heads"};
constexpr FieldName kNumKvHeads{"attention.head_count_kv", "num_key_value_heads"};
constexpr FieldName kHeadDim{"attention.key_length", "head_dim"};
constexpr FieldName kValueLength{.gguf = "attention.value_length", .hf = {}};
constexpr FieldName kMaxPositions{"context_length", "max_position_embeddings"};
constexpr FieldName kEps{"attention.layer_norm_rms_epsilon", "rms_norm_eps"};

// Numbers that change what a model computes, and the value with which they do not. An architecture
// that has one reads it; of any other, another value is refused.
struct NeutralField {
  FieldName name;
  double value;
};
constexpr NeutralField kNeutralFields[] = {
    {{"expert_count", "num_local_experts"}, 0},
    {{.gguf = {}, .hf = "num_experts"}, 0},
    {{.gguf = {}, .hf = "n_routed_experts"}, 0},
    {{"attention.scale", "attention_multiplier"}, 0},
    {{"attention.output_scale", "attn_output_multiplier"}, 1},
    {{"attention.temperature_length", "attn_temperature_len"}, 0},
    {{"attention.max_alibi_bias", "alibi"}, 0},
    {{"attention.clamp_kqv", "clip_qkv"}, 0},
    {{"attn_logit_softcapping", "attn_logit_softcapping"}, 0},
    {{"final_logit_softcapping", "final_logit_softcapping"}, 0},
    {{"embedding_scale", "embedding_multiplier"}, 1},
    {{"residual_scale", "residual_multiplier"}, 1},
    {{"logit_scale", "logits_scaling"}, 1},
    {{.gguf = {}, .hf = "logit_scale"}, 1},
    {{"use_parallel_residual", "use_parallel_residual"}, 0},
    {{"rope.dimension_sections", "mrope_section"}, 0},
    {{.gguf = "rope.scaling.yarn_ext_factor", .hf = {}}, 1},
    {{.gguf = "rope.scaling.yarn_log_multiplier", .hf = {}}, 0},
    {{.gguf = {}, .hf = "use_bidirectional_attention"}, 0},
    {{.gguf = {}, .hf = "attention_chunk_size"}, 0},
    {{.gguf = {}, .hf = "use_mrope"}, 0},
    {{.gguf = {}, .hf = "use_qk_norm"}, 0},
    {{.gguf = {}, .hf = "qk_layernorm"}, 0},
    {{.gguf = {}, .hf = "no_rope_layers"}, 0},
};

// The value as a number; a boolean is 0 or 1, and nullopt is anything else.
std::optional<double> NumberOf(const ConfigFields& fields, FieldName name) {
  const FloatRange any{-1e300, 1e300};
  if (const auto number = fields.Float(name, any)) return *number;
  if (const auto integer = fields.Int(name, {.min = INT64_MIN})) {
    return static_cast<double>(*integer);
  }
  if (const auto is_set = fields.BoolOr(name, false)) return *is_set ? 1.0 : 0.0;
  return std::nullopt;
}

Status CheckUnreadFields(const ConfigFields& fields) {
  for (const NeutralField& field : kNeutralFields) {
    const bool has_name = !(fields.gguf() != nullptr ? field.name.gguf : field.name.hf).empty();
    if (!has_name || fields.WasRead(field.name) || !fields.HasValue(field.name)) continue;
    if (NumberOf(fields, field.name) == field.value) continue;
    return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", fields.Label(field.name),
                field.value, fields.Text(field.name));
  }
  return {};
}

// Sets head_dim where it is 0 to hidden_size / num_heads, then checks the heads against each other.
Status CheckHeads(const ConfigFields& fields, ModelSpec& spec) {
  const auto name = [&](FieldName field) {
    if (fields.json() != nullptr) return std::string(field.hf);
    const std::string label = fields.Label(field);
    return label.substr(label.rfind(' ') + 1);  // without the file
  };
  if (spec.head_dim == 0) {
    if (spec.hidden_size % spec.num_heads != 0) {
      return Fail(ErrorCode::kCorrupt, "{}: expected a multiple of {} ({}), got {}",
                  fields.Label(kHiddenSize), name(kNumHeads), spec.num_heads, spec.hidden_size);
    }
    spec.head_dim = spec.hidden_size / spec.num_heads;
  }
  KVICK_RETURN_IF_ERROR(CheckRange(fields.Label(kHeadDim), spec.head_dim, kHeadDimRange));
  if (spec.head_dim % 2 != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an even number, got {}", fields.Label(kHeadDim),
                spec.head_dim);
  }
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a divisor of {} ({}), got {}",
                fields.Label(kNumKvHeads), name(kNumHeads), spec.num_heads, spec.num_kv_heads);
  }
  return {};
}

// GGUF files say how long a value is; here it is as long as a key.
Status CheckValueLength(const ConfigFields& fields, int64_t head_dim) {
  if (fields.gguf() == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const int64_t length, fields.IntOr(kValueLength, {.min = 0}, head_dim));
  if (length == head_dim) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected the length of a key ({}), got {}",
              fields.Label(kValueLength), head_dim, length);
}

}  // namespace

Status ReadSizes(const ConfigFields& fields, const Architecture& architecture, ModelSpec& spec) {
  const bool is_gguf = fields.gguf() != nullptr;
  const HfDefaults& defaults = architecture.hf_defaults;
  KVICK_ASSIGN_OR_RETURN(const int64_t num_layers, fields.Int(kNumLayers, kLayersRange));
  spec.layers.resize(static_cast<size_t>(num_layers));
  KVICK_ASSIGN_OR_RETURN(spec.hidden_size, fields.Int(kHiddenSize, kWidthRange));
  KVICK_ASSIGN_OR_RETURN(spec.intermediate_size, fields.Int(kIntermediateSize, kWidthRange));
  KVICK_ASSIGN_OR_RETURN(spec.num_heads, fields.Int(kNumHeads, kHeadsRange));
  const bool has_default = !is_gguf && !fields.Has(kNumKvHeads) && defaults.num_kv_heads > 0;
  KVICK_ASSIGN_OR_RETURN(
      spec.num_kv_heads,
      fields.IntOr(kNumKvHeads, kHeadsRange, has_default ? defaults.num_kv_heads : spec.num_heads));
  const int64_t default_head_dim = is_gguf ? 0 : defaults.head_dim;
  KVICK_ASSIGN_OR_RETURN(spec.head_dim, fields.IntOr(kHeadDim, kHeadDimRange, default_head_dim));
  if (is_gguf) {
    KVICK_ASSIGN_OR_RETURN(spec.max_positions, fields.Int(kMaxPositions, kPositionsRange));
    KVICK_ASSIGN_OR_RETURN(spec.rms_norm_eps, fields.Float(kEps, kEpsRange));
  } else {
    KVICK_ASSIGN_OR_RETURN(spec.max_positions,
                           fields.IntOr(kMaxPositions, kPositionsRange, defaults.max_positions));
    KVICK_ASSIGN_OR_RETURN(spec.rms_norm_eps,
                           fields.FloatOr(kEps, kEpsRange, defaults.rms_norm_eps));
  }
  KVICK_RETURN_IF_ERROR(CheckHeads(fields, spec));
  return CheckValueLength(fields, spec.head_dim);
}

Status DescribeLayers(const ConfigFields& fields, const Architecture& architecture,
                      ModelSpec& spec) {
  spec.architecture = fields.gguf() != nullptr ? architecture.gguf_name : architecture.hf_name;
  spec.tensor_names =
      fields.gguf() != nullptr ? *architecture.gguf_tensors : *architecture.hf_tensors;
  if (architecture.describe != nullptr) {
    KVICK_RETURN_IF_ERROR(architecture.describe(fields, spec));
  }
  if (spec.ropes.empty()) {
    KVICK_ASSIGN_OR_RETURN(RopeSpec rope, ReadRope(fields, architecture, spec));
    spec.ropes.push_back(std::move(rope));
  }
  return CheckUnreadFields(fields);
}

}  // namespace kvick
