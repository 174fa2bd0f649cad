#include <cstring>
#include <string>

#include "base/check.h"
#include "formats/quoted.h"
#include "model/arch/rope_fields.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

constexpr FieldName kScalingType{.gguf = "rope.scaling.type", .hf = {}};
constexpr FieldName kFactor{.gguf = "rope.scaling.factor", .hf = {}};
constexpr FieldName kLegacyFactor{.gguf = "rope.scale_linear", .hf = {}};
constexpr FieldName kOriginalContext{.gguf = "rope.scaling.original_context_length", .hf = {}};
constexpr FieldName kAttentionFactor{.gguf = "rope.scaling.attn_factor", .hf = {}};
constexpr FieldName kYarnAttentionFactor{.gguf = "rope.scaling.yarn_attn_factor", .hf = {}};
constexpr FieldName kYarnBetaFast{.gguf = "rope.scaling.yarn_beta_fast", .hf = {}};
constexpr FieldName kYarnBetaSlow{.gguf = "rope.scaling.yarn_beta_slow", .hf = {}};
constexpr FieldName kTheta{.gguf = "rope.freq_base", .hf = {}};
constexpr FieldName kSlidingTheta{.gguf = "rope.freq_base_swa", .hf = {}};
constexpr FieldName kNumRotated{.gguf = "rope.dimension_count", .hf = {}};

Status ReadNumRotated(const ConfigFields& fields, const Architecture& architecture,
                      int64_t head_dim, RopeSpec& rope) {
  KVICK_ASSIGN_OR_RETURN(rope.num_rotated, fields.IntOr(kNumRotated, {.min = 0}, head_dim));
  if (rope.num_rotated == head_dim) return {};
  if (!architecture.has_partial_rotation) {
    return Fail(ErrorCode::kUnsupported, "{}: expected the length of a key ({}), got {}",
                fields.Label(kNumRotated), head_dim, rope.num_rotated);
  }
  if (rope.num_rotated >= 2 && rope.num_rotated < head_dim && rope.num_rotated % 2 == 0) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected an even number from 2 to {}, got {}",
              fields.Label(kNumRotated), head_dim, rope.num_rotated);
}

// The attention factor of the model stands in the file, or follows from the factor. llama.cpp does
// not read what the file says of it.
Status ReadYarnScaling(const ConfigFields& fields, const ModelSpec& spec, RopeSpec& rope) {
  KVICK_ASSIGN_OR_RETURN(
      rope.original_max_positions,
      fields.IntOr(kOriginalContext, {2, kPositionsRange.max}, spec.max_positions));
  KVICK_ASSIGN_OR_RETURN(rope.beta_fast, fields.FloatOr(kYarnBetaFast, kFactorRange, 32.0));
  KVICK_ASSIGN_OR_RETURN(rope.beta_slow, fields.FloatOr(kYarnBetaSlow, kFactorRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(rope.magnitude,
                         fields.FloatOr(kYarnAttentionFactor, kFactorRange,
                                        rope.magnitude * YarnMagnitude(rope.factor, 1.0)));
  if (rope.theta > 1.0) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected more than 1 with yarn, got 1",
              fields.Label(kTheta));
}

// As llama.cpp: no type means linear, which without a factor is none; type none overrides a factor.
Status ReadScaling(const ConfigFields& fields, const ModelSpec& spec, RopeSpec& rope) {
  KVICK_ASSIGN_OR_RETURN(const std::string kind, fields.StringOr(kScalingType, "linear"));
  if (kind != "none" && kind != "linear" && kind != "yarn" && kind != "longrope") {
    return Fail(ErrorCode::kUnsupported,
                "{}: expected \"none\", \"linear\", \"yarn\" or \"longrope\", got {}",
                fields.Label(kScalingType), Quoted(kind));
  }
  KVICK_ASSIGN_OR_RETURN(const double legacy, fields.FloatOr(kLegacyFactor, kFactorRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(const double factor, fields.FloatOr(kFactor, kFactorRange, legacy));
  KVICK_ASSIGN_OR_RETURN(rope.magnitude, fields.FloatOr(kAttentionFactor, kFactorRange, 1.0));
  if (kind == "none" || kind == "longrope" || factor == 1.0) return {};
  rope.factor = factor;
  rope.scaling = kind == "yarn" ? RopeSpec::Scaling::kYarn : RopeSpec::Scaling::kLinear;
  return kind == "yarn" ? ReadYarnScaling(fields, spec, rope) : Status();
}

Result<std::vector<double>> ReadFactors(const GgufFile& file, const TensorInfo& tensor,
                                        int64_t num_pairs) {
  if (tensor.format != &FormatOf(WeightType::kF32) ||
      tensor.shape != std::vector<int64_t>{num_pairs}) {
    return Fail(ErrorCode::kCorrupt, "{}: {}: expected F32 [{}], got {} {}", file.source(),
                tensor.name, num_pairs, tensor.type_name, ShapeText(tensor.shape));
  }
  std::vector<float> values(static_cast<size_t>(num_pairs));
  std::memcpy(values.data(), tensor.data, static_cast<size_t>(tensor.num_bytes));
  for (const float factor : values) {
    KVICK_RETURN_IF_ERROR(
        CheckRange(fmt::format("{}: an element of {}", file.source(), tensor.name),
                   static_cast<double>(factor), kFactorRange));
  }
  return std::vector<double>(values.begin(), values.end());
}

// What llama.cpp's converter makes of llama3 scaling, one divisor for each pair, and of longrope,
// two.
Status ReadFreqFactors(const ConfigFields& fields, const ModelSpec& spec, RopeSpec& rope) {
  const GgufFile& file = *fields.gguf();
  const int64_t num_pairs = rope.num_rotated / 2;
  if (const TensorInfo* tensor = file.tensors().Find("rope_freqs.weight")) {
    KVICK_ASSIGN_OR_RETURN(rope.freq_factors, ReadFactors(file, *tensor, num_pairs));
    return {};
  }
  const TensorInfo* short_factors = file.tensors().Find("rope_factors_short.weight");
  const TensorInfo* long_factors = file.tensors().Find("rope_factors_long.weight");
  if (short_factors == nullptr && long_factors == nullptr) return {};
  if (short_factors == nullptr || long_factors == nullptr) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor rope_factors_{}.weight is missing", file.source(),
                short_factors == nullptr ? "short" : "long");
  }
  rope.scaling = RopeSpec::Scaling::kLongRope;
  KVICK_ASSIGN_OR_RETURN(rope.freq_factors, ReadFactors(file, *short_factors, num_pairs));
  KVICK_ASSIGN_OR_RETURN(rope.long_freq_factors, ReadFactors(file, *long_factors, num_pairs));
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions,
                         fields.IntOr(kOriginalContext, kPositionsRange, spec.max_positions));
  return {};
}

}  // namespace

Result<RopeSpec> ReadGgufRope(const ConfigFields& fields, const Architecture& architecture,
                              const ModelSpec& spec, RopeLayers layers) {
  RopeSpec rope;
  rope.pairs = architecture.gguf_pairs;
  KVICK_RETURN_IF_ERROR(ReadNumRotated(fields, architecture, spec.head_dim, rope));
  const FieldName theta = layers == RopeLayers::kSliding ? kSlidingTheta : kTheta;
  KVICK_ASSIGN_OR_RETURN(rope.theta, fields.FloatOr(theta, kThetaRange, rope.theta));
  if (layers == RopeLayers::kSliding) return rope;  // only the others are scaled
  KVICK_RETURN_IF_ERROR(ReadScaling(fields, spec, rope));
  KVICK_RETURN_IF_ERROR(ReadFreqFactors(fields, spec, rope));
  return rope;
}

}  // namespace kvick
