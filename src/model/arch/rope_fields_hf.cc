// Older files: rope_theta, and rope_scaling for the rest. Since transformers 5: rope_parameters for
// all of it, one set for each kind of layer where kinds differ.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/quoted.h"
#include "model/arch/rope_fields.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> Unsupported(const JsonMembers& fields, std::string_view key,
                                  std::string_view expected) {
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", fields.Label(key), expected,
              JsonText(*fields.Find(key)));
}

// Sets the rotated part of a head: `part` of it unless `fields` says otherwise.
Status ReadRotated(const JsonMembers& fields, const Architecture& architecture, int64_t head_dim,
                   RopeSpec& rope) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  if (fields.Find(kKey) == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const double part, fields.Float(kKey, {0.0, 1.0}));
  if (!architecture.has_partial_rotation && part != 1.0) return Unsupported(fields, kKey, "1");
  rope.num_rotated = static_cast<int64_t>(static_cast<double>(head_dim) * part);
  if (rope.num_rotated >= 2 && rope.num_rotated % 2 == 0) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected an even part of head_dim ({}), got {} elements",
              fields.Label(kKey), head_dim, rope.num_rotated);
}

Status ReadLlama3Scaling(const JsonMembers& scaling, RopeSpec& rope) {
  KVICK_ASSIGN_OR_RETURN(rope.factor, scaling.Float("factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.low_freq_factor, scaling.Float("low_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.high_freq_factor, scaling.Float("high_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions,
                         scaling.Int("original_max_position_embeddings", kPositionsRange));
  if (rope.low_freq_factor < rope.high_freq_factor) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected less than high_freq_factor ({}), got {}",
              scaling.Label("low_freq_factor"), rope.high_freq_factor, rope.low_freq_factor);
}

// The original context and the factor, each of which may follow from the other. The context may
// stand beside rope_scaling as well.
Status ReadExtension(const ConfigFields& fields, const JsonMembers& scaling, int64_t max_positions,
                     RopeSpec& rope) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  constexpr IntRange kRange{2, kPositionsRange.max};
  const JsonMembers& outer = *fields.json();
  const JsonMembers& holder = outer.Find(kKey) != nullptr ? outer : scaling;
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions, holder.IntOr(kKey, kRange, max_positions));
  const double extension =
      static_cast<double>(max_positions) / static_cast<double>(rope.original_max_positions);
  KVICK_ASSIGN_OR_RETURN(rope.factor, scaling.FloatOr("factor", kFactorRange, extension));
  return {};
}

Status ReadYarnScaling(const JsonMembers& scaling, RopeSpec& rope) {
  constexpr FloatRange kMscaleRange{0.0, 100.0};
  KVICK_ASSIGN_OR_RETURN(rope.beta_fast, scaling.FloatOr("beta_fast", kFactorRange, 32.0));
  KVICK_ASSIGN_OR_RETURN(rope.beta_slow, scaling.FloatOr("beta_slow", kFactorRange, 1.0));
  KVICK_ASSIGN_OR_RETURN(rope.truncates_ramp, scaling.BoolOr("truncate", true));
  KVICK_ASSIGN_OR_RETURN(const double mscale, scaling.FloatOr("mscale", kMscaleRange, 0.0));
  KVICK_ASSIGN_OR_RETURN(const double all_dim,
                         scaling.FloatOr("mscale_all_dim", kMscaleRange, 0.0));
  double magnitude = YarnMagnitude(rope.factor, 1.0);
  if (mscale != 0.0 && all_dim != 0.0) {
    magnitude = YarnMagnitude(rope.factor, mscale) / YarnMagnitude(rope.factor, all_dim);
  }
  KVICK_ASSIGN_OR_RETURN(rope.magnitude,
                         scaling.FloatOr("attention_factor", kFactorRange, magnitude));
  if (rope.theta > 1.0) return {};
  return Fail(ErrorCode::kCorrupt, "rope_theta: expected more than 1 with yarn, got 1");
}

Result<std::vector<double>> ReadFactors(const JsonMembers& scaling, std::string_view key,
                                        int64_t num_pairs) {
  KVICK_ASSIGN_OR_RETURN(const Json* array, scaling.Array(key));
  if (static_cast<int64_t>(array->size()) != num_pairs) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {} numbers, got {}", scaling.Label(key),
                num_pairs, array->size());
  }
  std::vector<double> factors;
  for (const Json& element : *array) {
    if (!element.is_number()) {
      return Fail(ErrorCode::kCorrupt, "{}: expected numbers, got {}", scaling.Label(key),
                  JsonText(element));
    }
    factors.push_back(element.get<double>());
    KVICK_RETURN_IF_ERROR(CheckRange(scaling.Label(key), factors.back(), kFactorRange));
  }
  return factors;
}

Status ReadLongRopeScaling(const JsonMembers& scaling, RopeSpec& rope) {
  const int64_t num_pairs = rope.num_rotated / 2;
  KVICK_ASSIGN_OR_RETURN(rope.freq_factors, ReadFactors(scaling, "short_factor", num_pairs));
  KVICK_ASSIGN_OR_RETURN(rope.long_freq_factors, ReadFactors(scaling, "long_factor", num_pairs));
  const double magnitude = LongRopeMagnitude(rope.factor, rope.original_max_positions);
  KVICK_ASSIGN_OR_RETURN(rope.magnitude,
                         scaling.FloatOr("attention_factor", kFactorRange, magnitude));
  return {};
}

Status ReadScaling(const ConfigFields& fields, const JsonMembers& scaling, const ModelSpec& spec,
                   RopeSpec& rope) {
  using Scaling = RopeSpec::Scaling;
  const char* kind_key = scaling.Find("rope_type") != nullptr ? "rope_type" : "type";
  KVICK_ASSIGN_OR_RETURN(const std::string kind, scaling.StringOr(kind_key, "default"));
  if (kind == "default") return {};
  if (kind == "linear") {
    rope.scaling = Scaling::kLinear;
    KVICK_ASSIGN_OR_RETURN(rope.factor, scaling.Float("factor", kFactorRange));
    return {};
  }
  if (kind == "llama3") {
    rope.scaling = Scaling::kLlama3;
    return ReadLlama3Scaling(scaling, rope);
  }
  if (kind != "yarn" && kind != "longrope" && kind != "su") {
    return Unsupported(scaling, kind_key,
                       "\"default\", \"linear\", \"llama3\", \"yarn\" or \"longrope\"");
  }
  // Files of Phi-3 call longrope by two older names.
  const bool has_factors = scaling.Find("long_factor") != nullptr;
  rope.scaling = kind == "yarn" && !has_factors ? Scaling::kYarn : Scaling::kLongRope;
  KVICK_RETURN_IF_ERROR(ReadExtension(fields, scaling, spec.max_positions, rope));
  return rope.scaling == Scaling::kYarn ? ReadYarnScaling(scaling, rope)
                                        : ReadLongRopeScaling(scaling, rope);
}

// rope_parameters, its set for a kind of layer, or rope_scaling; null where there is none.
Result<std::pair<const Json*, std::string>> FindParameters(const JsonMembers& fields,
                                                           RopeLayers layers) {
  using Found = std::pair<const Json*, std::string>;
  const bool is_new = fields.Find("rope_parameters") != nullptr;
  const char* key = is_new ? "rope_parameters" : "rope_scaling";
  if (fields.Find(key) == nullptr) return Found{nullptr, ""};
  KVICK_ASSIGN_OR_RETURN(const Json* object, fields.Object(key));
  const char* kind = layers == RopeLayers::kSliding ? "sliding_attention" : "full_attention";
  if (layers != RopeLayers::kAll) {
    const JsonMembers kinds(*object, fields.Label(key));
    if (kinds.Find(kind) != nullptr) {
      KVICK_ASSIGN_OR_RETURN(const Json* set, kinds.Object(kind));
      return Found{set, kinds.Label(kind)};
    }
    // What is one set is that of the layers that see all.
    if (!is_new && layers == RopeLayers::kSliding) return Found{nullptr, ""};
  }
  for (const auto& [name, value] : object->items()) {
    if (value.is_object()) {
      return Fail(ErrorCode::kUnsupported,
                  "{}: expected one set for all layers, got an object for {}", fields.Label(key),
                  Quoted(name));
    }
  }
  return Found{object, fields.Label(key)};
}

}  // namespace

Result<RopeSpec> ReadHfRope(const ConfigFields& fields, const Architecture& architecture,
                            const ModelSpec& spec, RopeLayers layers) {
  const JsonMembers& members = *fields.json();
  RopeSpec rope;
  rope.num_rotated = spec.head_dim;
  KVICK_RETURN_IF_ERROR(ReadRotated(members, architecture, spec.head_dim, rope));
  const bool is_local = layers == RopeLayers::kSliding;
  KVICK_ASSIGN_OR_RETURN(
      rope.theta, members.FloatOr(is_local ? "rope_local_base_freq" : "rope_theta", kThetaRange,
                                  is_local ? 10000.0 : architecture.hf_defaults.rope_theta));
  KVICK_ASSIGN_OR_RETURN(const auto found, FindParameters(members, layers));
  const auto& [object, label] = found;
  if (object == nullptr) return rope;
  const JsonMembers scaling(*object, label);
  KVICK_RETURN_IF_ERROR(ReadRotated(scaling, architecture, spec.head_dim, rope));
  KVICK_ASSIGN_OR_RETURN(rope.theta, scaling.FloatOr("rope_theta", kThetaRange, rope.theta));
  KVICK_RETURN_IF_ERROR(ReadScaling(fields, scaling, spec, rope));
  return rope;
}

}  // namespace kvick
