#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"
#include "model/llama_config.h"
#include "model/llama_config_checks.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> Unsupported(const JsonMembers& fields, std::string_view key,
                                  std::string_view possible) {
  return Fail(ErrorCode::kUnsupported, "{} is {}, only {}", fields.Label(key),
              JsonText(*fields.Find(key)), possible);
}

// Refuses what would change the numbers in a way that kvick does not know.
Status CheckSupported(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const std::string type, fields.StringOr("model_type", ""));
  if (type != "llama" && type != "mistral") {
    return Fail(ErrorCode::kUnsupported, "{} is {}, only \"llama\" and \"mistral\" are possible",
                fields.Label("model_type"), Quoted(type));
  }
  if (type == "mistral" && fields.Find("sliding_window") != nullptr) {
    return Unsupported(fields, "sliding_window", "null is possible");
  }
  KVICK_ASSIGN_OR_RETURN(const std::string activation, fields.StringOr("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return Unsupported(fields, "hidden_act", "\"silu\" is possible");
  }
  if (fields.Find("quantization_config") != nullptr) {
    return Unsupported(fields, "quantization_config", "F32, F16 and BF16 weights are possible");
  }
  return {};
}

Status CheckFullRotation(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const double rotated,
                         fields.FloatOr("partial_rotary_factor", {0.0, 1.0}, 1.0));
  if (rotated == 1.0) return {};
  return Unsupported(fields, "partial_rotary_factor", "1 is possible");
}

Status ReadLlama3Scaling(const JsonMembers& scaling, RopeConfig& rope) {
  KVICK_ASSIGN_OR_RETURN(rope.low_freq_factor, scaling.Float("low_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.high_freq_factor, scaling.Float("high_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions,
                         scaling.Int("original_max_position_embeddings", kPositionsRange));
  if (rope.low_freq_factor < rope.high_freq_factor) return {};
  return Fail(ErrorCode::kCorrupt, "{} is {}, less than high_freq_factor ({}) is wanted",
              scaling.Label("low_freq_factor"), rope.low_freq_factor, rope.high_freq_factor);
}

Status ReadScaling(const JsonMembers& scaling, RopeConfig& rope) {
  const char* kind_key = scaling.Find("rope_type") != nullptr ? "rope_type" : "type";
  KVICK_ASSIGN_OR_RETURN(const std::string kind, scaling.StringOr(kind_key, "default"));
  if (kind == "default") return {};
  if (kind != "linear" && kind != "llama3") {
    return Unsupported(scaling, kind_key, "\"default\", \"linear\" and \"llama3\" are possible");
  }
  KVICK_ASSIGN_OR_RETURN(rope.factor, scaling.Float("factor", kFactorRange));
  rope.scaling = kind == "linear" ? RopeConfig::Scaling::kLinear : RopeConfig::Scaling::kLlama3;
  if (kind == "linear") return {};
  return ReadLlama3Scaling(scaling, rope);
}

// Older files: rope_theta, and rope_scaling for the rest. Newer: rope_parameters for all of it.
Result<RopeConfig> ReadRope(const JsonMembers& fields) {
  RopeConfig rope;
  KVICK_RETURN_IF_ERROR(CheckFullRotation(fields));
  KVICK_ASSIGN_OR_RETURN(rope.theta, fields.FloatOr("rope_theta", kThetaRange, rope.theta));
  const char* key = fields.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  if (fields.Find(key) == nullptr) return rope;
  KVICK_ASSIGN_OR_RETURN(const Json* object, fields.Object(key));
  for (const auto& [name, value] : object->items()) {
    if (value.is_object()) {
      return Fail(ErrorCode::kUnsupported,
                  "{} holds an object {}, only one set for all layers is possible",
                  fields.Label(key), Quoted(name));
    }
  }
  const JsonMembers scaling(*object, fields.Label(key));
  KVICK_RETURN_IF_ERROR(CheckFullRotation(scaling));
  KVICK_ASSIGN_OR_RETURN(rope.theta, scaling.FloatOr("rope_theta", kThetaRange, rope.theta));
  KVICK_RETURN_IF_ERROR(ReadScaling(scaling, rope));
  return rope;
}

Status ReadSizes(const JsonMembers& fields, LlamaConfig& config) {
  KVICK_ASSIGN_OR_RETURN(config.num_layers, fields.Int("num_hidden_layers", kLayersRange));
  KVICK_ASSIGN_OR_RETURN(config.hidden_size, fields.Int("hidden_size", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.intermediate_size, fields.Int("intermediate_size", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.num_heads, fields.Int("num_attention_heads", kHeadsRange));
  KVICK_ASSIGN_OR_RETURN(config.num_kv_heads,
                         fields.IntOr("num_key_value_heads", kHeadsRange, config.num_heads));
  KVICK_ASSIGN_OR_RETURN(config.head_dim, fields.IntOr("head_dim", kHeadDimRange, 0));
  KVICK_ASSIGN_OR_RETURN(config.vocab_size, fields.Int("vocab_size", kVocabRange));
  KVICK_ASSIGN_OR_RETURN(config.max_positions,
                         fields.IntOr("max_position_embeddings", kPositionsRange, 2048));
  return CheckHeads({"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"},
                    config);
}

Status ReadTokenIds(const JsonMembers& fields, LlamaConfig& config) {
  const IntRange ids{0, config.vocab_size - 1};
  if (fields.Find("bos_token_id") != nullptr) {
    KVICK_ASSIGN_OR_RETURN(const int64_t id, fields.Int("bos_token_id", ids));
    config.bos_id = static_cast<int32_t>(id);
  }
  const Json* ends = fields.Find("eos_token_id");
  if (ends == nullptr) return {};
  const Json list = ends->is_array() ? *ends : Json::array({*ends});
  for (const Json& value : list) {
    KVICK_ASSIGN_OR_RETURN(const int64_t id, JsonInt(value, fields.Label("eos_token_id"), ids));
    config.eos_ids.push_back(static_cast<int32_t>(id));
  }
  return {};
}

Result<LlamaConfig> ReadConfig(const JsonMembers& fields) {
  KVICK_RETURN_IF_ERROR(CheckSupported(fields));
  LlamaConfig config;
  KVICK_ASSIGN_OR_RETURN(config.architecture, fields.StringOr("model_type", ""));
  KVICK_ASSIGN_OR_RETURN(config.name, fields.StringOr("_name_or_path", ""));
  KVICK_RETURN_IF_ERROR(ReadSizes(fields, config));
  KVICK_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.FloatOr("rms_norm_eps", kEpsRange, 1e-6));
  KVICK_ASSIGN_OR_RETURN(config.rope, ReadRope(fields));
  KVICK_ASSIGN_OR_RETURN(config.tie_word_embeddings, fields.BoolOr("tie_word_embeddings", false));
  KVICK_ASSIGN_OR_RETURN(config.attention_bias, fields.BoolOr("attention_bias", false));
  KVICK_ASSIGN_OR_RETURN(config.mlp_bias, fields.BoolOr("mlp_bias", false));
  KVICK_RETURN_IF_ERROR(ReadTokenIds(fields, config));
  return config;
}

}  // namespace

Result<LlamaConfig> LlamaConfigFromHf(const Json& json) {
  if (!json.is_object()) {
    return Fail(ErrorCode::kCorrupt, "config.json: the text is {}, an object is wanted",
                JsonText(json));
  }
  return ReadConfig(JsonMembers(json)).map_error(WithSource("config.json"));
}

}  // namespace kvick
