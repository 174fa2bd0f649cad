#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/quoted.h"
#include "model/llama_config.h"
#include "model/llama_config_checks.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

// Typed fields of a JSON object. `source` starts every message; null counts as absent.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  std::string Label(const char* key) const { return fmt::format("{}: {}", source_, key); }

  // nullptr where it is absent.
  const Json* Find(const char* key) const {
    const auto field = object_.find(key);
    return field == object_.end() || field->is_null() ? nullptr : &*field;
  }

  Result<int64_t> Int(const char* key, IntRange range) const {
    const Json* field = Find(key);
    if (field == nullptr) return Fail(ErrorCode::kCorrupt, "{} is missing", Label(key));
    KVICK_ASSIGN_OR_RETURN(const int64_t value, ToInt(Label(key), *field));
    KVICK_RETURN_IF_ERROR(CheckRange(Label(key), value, range));
    return value;
  }

  Result<int64_t> IntOr(const char* key, IntRange range, int64_t fallback) const {
    if (Find(key) == nullptr) return fallback;
    return Int(key, range);
  }

  Result<double> Number(const char* key, FloatRange range) const {
    const Json* field = Find(key);
    if (field == nullptr) return Fail(ErrorCode::kCorrupt, "{} is missing", Label(key));
    if (!field->is_number()) return WrongType(key, "a number");
    const auto value = field->get<double>();
    KVICK_RETURN_IF_ERROR(CheckRange(Label(key), value, range));
    return value;
  }

  Result<double> NumberOr(const char* key, FloatRange range, double fallback) const {
    if (Find(key) == nullptr) return fallback;
    return Number(key, range);
  }

  Result<bool> BoolOr(const char* key, bool fallback) const {
    const Json* field = Find(key);
    if (field == nullptr) return fallback;
    if (!field->is_boolean()) return WrongType(key, "true or false");
    return field->get<bool>();
  }

  Result<std::string> StringOr(const char* key, const char* fallback) const {
    const Json* field = Find(key);
    if (field == nullptr) return fallback;
    if (!field->is_string()) return WrongType(key, "a string");
    return field->get<std::string>();
  }

  static Result<int64_t> ToInt(std::string_view label, const Json& value) {
    const bool is_int = value.is_number_integer();
    const bool is_too_large = value.is_number_unsigned() &&
                              value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (!is_int || is_too_large) {
      return Fail(ErrorCode::kCorrupt, "{} is {}, {} is wanted", label, JsonText(value),
                  is_int ? "a smaller number" : "an integer");
    }
    return value.get<int64_t>();
  }

 private:
  tl::unexpected<Error> WrongType(const char* key, const char* wanted) const {
    return Fail(ErrorCode::kCorrupt, "{} is {}, {} is wanted", Label(key), JsonText(*Find(key)),
                wanted);
  }

  const Json& object_;
  std::string source_;
};

tl::unexpected<Error> Unsupported(const Fields& fields, const char* key,
                                  std::string_view possible) {
  return Fail(ErrorCode::kUnsupported, "{} is {}, {}", fields.Label(key),
              JsonText(*fields.Find(key)), possible);
}

// Refuses what would change the numbers in a way that kvick does not know.
Status CheckSupported(const Fields& fields) {
  KVICK_ASSIGN_OR_RETURN(const std::string type, fields.StringOr("model_type", ""));
  if (type != "llama" && type != "mistral") {
    return Fail(ErrorCode::kUnsupported, "{} is {}, \"llama\" and \"mistral\" are possible",
                fields.Label("model_type"), Quoted(type));
  }
  if (type == "mistral" && fields.Find("sliding_window") != nullptr) {
    return Unsupported(fields, "sliding_window", "only null is possible");
  }
  KVICK_ASSIGN_OR_RETURN(const std::string activation, fields.StringOr("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return Unsupported(fields, "hidden_act", "only \"silu\" is possible");
  }
  if (fields.Find("quantization_config") != nullptr) {
    return Unsupported(fields, "quantization_config",
                       "only F32, F16 and BF16 weights are possible");
  }
  return {};
}

Status CheckFullRotation(const Fields& fields) {
  KVICK_ASSIGN_OR_RETURN(const double rotated,
                         fields.NumberOr("partial_rotary_factor", {0.0, 1.0}, 1.0));
  if (rotated == 1.0) return {};
  return Unsupported(fields, "partial_rotary_factor", "only 1 is possible");
}

Status ReadLlama3Scaling(const Fields& scaling, RopeConfig& rope) {
  KVICK_ASSIGN_OR_RETURN(rope.low_freq_factor, scaling.Number("low_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.high_freq_factor, scaling.Number("high_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions,
                         scaling.Int("original_max_position_embeddings", kPositionsRange));
  if (rope.low_freq_factor < rope.high_freq_factor) return {};
  return Fail(ErrorCode::kCorrupt, "{} is {}, less than high_freq_factor ({}) is wanted",
              scaling.Label("low_freq_factor"), rope.low_freq_factor, rope.high_freq_factor);
}

Status ReadScaling(const Fields& scaling, RopeConfig& rope) {
  const char* kind_key = scaling.Find("rope_type") != nullptr ? "rope_type" : "type";
  KVICK_ASSIGN_OR_RETURN(const std::string kind, scaling.StringOr(kind_key, "default"));
  if (kind == "default") return {};
  if (kind != "linear" && kind != "llama3") {
    return Unsupported(scaling, kind_key, "\"default\", \"linear\" and \"llama3\" are possible");
  }
  KVICK_ASSIGN_OR_RETURN(rope.factor, scaling.Number("factor", kFactorRange));
  rope.scaling = kind == "linear" ? RopeConfig::Scaling::kLinear : RopeConfig::Scaling::kLlama3;
  if (kind == "linear") return {};
  return ReadLlama3Scaling(scaling, rope);
}

// Older files: rope_theta, and rope_scaling for the rest. Newer: rope_parameters for all of it.
Result<RopeConfig> ReadRope(const Fields& fields) {
  RopeConfig rope;
  KVICK_RETURN_IF_ERROR(CheckFullRotation(fields));
  KVICK_ASSIGN_OR_RETURN(rope.theta, fields.NumberOr("rope_theta", kThetaRange, rope.theta));
  const char* key = fields.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* object = fields.Find(key);
  if (object == nullptr) return rope;
  if (!object->is_object()) {
    return Fail(ErrorCode::kCorrupt, "{} is {}, an object is wanted", fields.Label(key),
                JsonText(*object));
  }
  for (const auto& [name, value] : object->items()) {
    if (value.is_object()) {
      return Fail(ErrorCode::kUnsupported,
                  "{} holds an object {}, one set for all layers is possible", fields.Label(key),
                  Quoted(name));
    }
  }
  const Fields scaling(*object, fields.Label(key));
  KVICK_RETURN_IF_ERROR(CheckFullRotation(scaling));
  KVICK_ASSIGN_OR_RETURN(rope.theta, scaling.NumberOr("rope_theta", kThetaRange, rope.theta));
  KVICK_RETURN_IF_ERROR(ReadScaling(scaling, rope));
  return rope;
}

Status ReadSizes(const Fields& fields, LlamaConfig& config) {
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
  return CheckHeads(
      {"config.json", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"},
      config);
}

Status ReadTokenIds(const Fields& fields, LlamaConfig& config) {
  if (const Json* bos = fields.Find("bos_token_id")) {
    const std::string label = fields.Label("bos_token_id");
    KVICK_ASSIGN_OR_RETURN(const int64_t id, Fields::ToInt(label, *bos));
    KVICK_ASSIGN_OR_RETURN(config.bos_id, CheckTokenId(label, id, config.vocab_size));
  }
  const Json* eos = fields.Find("eos_token_id");
  if (eos == nullptr) return {};
  const std::string label = fields.Label("eos_token_id");
  const Json list = eos->is_array() ? *eos : Json::array({*eos});
  for (const Json& value : list) {
    KVICK_ASSIGN_OR_RETURN(const int64_t id, Fields::ToInt(label, value));
    KVICK_ASSIGN_OR_RETURN(const int32_t checked, CheckTokenId(label, id, config.vocab_size));
    config.eos_ids.push_back(checked);
  }
  return {};
}

}  // namespace

Result<LlamaConfig> LlamaConfigFromHf(const Json& json) {
  if (!json.is_object()) {
    return Fail(ErrorCode::kCorrupt, "config.json: the text is {}, an object is wanted",
                JsonText(json));
  }
  const Fields fields(json, "config.json");
  KVICK_RETURN_IF_ERROR(CheckSupported(fields));
  LlamaConfig config;
  KVICK_ASSIGN_OR_RETURN(config.architecture, fields.StringOr("model_type", ""));
  KVICK_ASSIGN_OR_RETURN(config.name, fields.StringOr("_name_or_path", ""));
  KVICK_RETURN_IF_ERROR(ReadSizes(fields, config));
  KVICK_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.NumberOr("rms_norm_eps", kEpsRange, 1e-6));
  KVICK_ASSIGN_OR_RETURN(config.rope, ReadRope(fields));
  KVICK_ASSIGN_OR_RETURN(config.tie_word_embeddings, fields.BoolOr("tie_word_embeddings", false));
  KVICK_ASSIGN_OR_RETURN(config.attention_bias, fields.BoolOr("attention_bias", false));
  KVICK_ASSIGN_OR_RETURN(config.mlp_bias, fields.BoolOr("mlp_bias", false));
  KVICK_RETURN_IF_ERROR(ReadTokenIds(fields, config));
  return config;
}

}  // namespace kvick
