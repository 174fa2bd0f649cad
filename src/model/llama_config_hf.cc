#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// An architecture, and what a missing key means: the defaults of transformers. A key of null is not
// missing there: it means no window, and as many KV heads as query heads.
struct Architecture {
  std::string_view model_type;
  int64_t max_positions;
  std::optional<int64_t> num_kv_heads;    // nullopt: as many as query heads
  std::optional<int64_t> sliding_window;  // nullopt: there is no such key
};

constexpr Architecture kArchitectures[] = {
    {"llama", 2048, {}, {}},
    {"mistral", 131072, 8, 4096},
};

tl::unexpected<Error> Unsupported(const JsonMembers& fields, std::string_view key,
                                  std::string_view expected) {
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", fields.Label(key), expected,
              JsonText(*fields.Find(key)));
}

Result<const Architecture*> FindArchitecture(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const std::string type, fields.StringOr("model_type", ""));
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.model_type == type) return &architecture;
  }
  return Fail(ErrorCode::kUnsupported, "{}: expected \"llama\" or \"mistral\", got {}",
              fields.Label("model_type"), Quoted(type));
}

// Refuses what would change the numbers in a way that kvick does not know.
Status CheckSupported(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const std::string activation, fields.StringOr("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return Unsupported(fields, "hidden_act", "\"silu\"");
  }
  if (fields.Find("quantization_config") != nullptr) {
    return Unsupported(fields, "quantization_config", "weights of F32, F16 or BF16");
  }
  return {};
}

// A window as long as the context hides nothing from anybody.
Status CheckWindow(const JsonMembers& fields, const Architecture& architecture,
                   int64_t max_positions) {
  constexpr std::string_view kKey = "sliding_window";
  if (!architecture.sliding_window) return {};
  if (fields.Has(kKey) && fields.Find(kKey) == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const int64_t window,
                         fields.IntOr(kKey, {.min = 1}, *architecture.sliding_window));
  if (window >= max_positions) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected null or at least {} (all positions), got {}{}",
              fields.Label(kKey), max_positions, window,
              fields.Has(kKey) ? "" : " (what a missing key means)");
}

Status CheckFullRotation(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const double rotated,
                         fields.FloatOr("partial_rotary_factor", {0.0, 1.0}, 1.0));
  if (rotated == 1.0) return {};
  return Unsupported(fields, "partial_rotary_factor", "1");
}

Status ReadLlama3Scaling(const JsonMembers& scaling, RopeConfig& rope) {
  KVICK_ASSIGN_OR_RETURN(rope.low_freq_factor, scaling.Float("low_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.high_freq_factor, scaling.Float("high_freq_factor", kFactorRange));
  KVICK_ASSIGN_OR_RETURN(rope.original_max_positions,
                         scaling.Int("original_max_position_embeddings", kPositionsRange));
  if (rope.low_freq_factor < rope.high_freq_factor) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected less than high_freq_factor ({}), got {}",
              scaling.Label("low_freq_factor"), rope.high_freq_factor, rope.low_freq_factor);
}

Status ReadScaling(const JsonMembers& scaling, RopeConfig& rope) {
  const char* kind_key = scaling.Find("rope_type") != nullptr ? "rope_type" : "type";
  KVICK_ASSIGN_OR_RETURN(const std::string kind, scaling.StringOr(kind_key, "default"));
  if (kind == "default") return {};
  if (kind != "linear" && kind != "llama3") {
    return Unsupported(scaling, kind_key, "\"default\", \"linear\" or \"llama3\"");
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
                  "{}: expected one set for all layers, got an object for {}", fields.Label(key),
                  Quoted(name));
    }
  }
  const JsonMembers scaling(*object, fields.Label(key));
  KVICK_RETURN_IF_ERROR(CheckFullRotation(scaling));
  KVICK_ASSIGN_OR_RETURN(rope.theta, scaling.FloatOr("rope_theta", kThetaRange, rope.theta));
  KVICK_RETURN_IF_ERROR(ReadScaling(scaling, rope));
  return rope;
}

Status ReadSizes(const JsonMembers& fields, const Architecture& architecture, LlamaConfig& config) {
  KVICK_ASSIGN_OR_RETURN(config.num_layers, fields.Int("num_hidden_layers", kLayersRange));
  KVICK_ASSIGN_OR_RETURN(config.hidden_size, fields.Int("hidden_size", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.intermediate_size, fields.Int("intermediate_size", kWidthRange));
  KVICK_ASSIGN_OR_RETURN(config.num_heads, fields.Int("num_attention_heads", kHeadsRange));
  const bool has_kv_heads = fields.Has("num_key_value_heads");
  KVICK_ASSIGN_OR_RETURN(
      config.num_kv_heads,
      fields.IntOr(
          "num_key_value_heads", kHeadsRange,
          has_kv_heads ? config.num_heads : architecture.num_kv_heads.value_or(config.num_heads)));
  KVICK_ASSIGN_OR_RETURN(config.head_dim, fields.IntOr("head_dim", kHeadDimRange, 0));
  KVICK_ASSIGN_OR_RETURN(config.vocab_size, fields.Int("vocab_size", kVocabRange));
  KVICK_ASSIGN_OR_RETURN(
      config.max_positions,
      fields.IntOr("max_position_embeddings", kPositionsRange, architecture.max_positions));
  KVICK_RETURN_IF_ERROR(CheckWindow(fields, architecture, config.max_positions));
  return CheckHeads({"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"},
                    config);
}

// nullopt for an id that is not in the vocabulary: such a token never comes.
Result<std::optional<int32_t>> TokenId(const Json& value, std::string_view label,
                                       int64_t vocab_size) {
  const bool is_id =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  if (!is_id) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a token id, got {}", label, JsonText(value));
  }
  const auto id = value.get<uint64_t>();
  if (id >= static_cast<uint64_t>(vocab_size)) return std::nullopt;
  return static_cast<int32_t>(id);
}

// nullopt where there is no such key.
Result<std::optional<std::vector<int32_t>>> EosIds(const JsonMembers& fields, int64_t vocab_size) {
  constexpr std::string_view kKey = "eos_token_id";
  const Json* value = fields.Find(kKey);
  if (value == nullptr) return std::nullopt;
  std::vector<int32_t> ids;
  for (const Json& element : value->is_array() ? *value : Json::array({*value})) {
    KVICK_ASSIGN_OR_RETURN(const auto id, TokenId(element, fields.Label(kKey), vocab_size));
    if (id) ids.push_back(*id);
  }
  return ids;
}

Status ReadTokenIds(const JsonMembers& fields, LlamaConfig& config) {
  if (const Json* bos = fields.Find("bos_token_id")) {
    KVICK_ASSIGN_OR_RETURN(config.bos_id,
                           TokenId(*bos, fields.Label("bos_token_id"), config.vocab_size));
  }
  KVICK_ASSIGN_OR_RETURN(auto eos_ids, EosIds(fields, config.vocab_size));
  if (eos_ids) config.eos_ids = *std::move(eos_ids);
  return {};
}

Result<LlamaConfig> ReadConfig(const JsonMembers& fields) {
  KVICK_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(fields));
  KVICK_RETURN_IF_ERROR(CheckSupported(fields));
  LlamaConfig config;
  config.architecture = architecture->model_type;
  KVICK_ASSIGN_OR_RETURN(config.name, fields.StringOr("_name_or_path", ""));
  KVICK_RETURN_IF_ERROR(ReadSizes(fields, *architecture, config));
  KVICK_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.FloatOr("rms_norm_eps", kEpsRange, 1e-6));
  KVICK_ASSIGN_OR_RETURN(config.rope, ReadRope(fields));
  KVICK_ASSIGN_OR_RETURN(config.tie_word_embeddings, fields.BoolOr("tie_word_embeddings", false));
  KVICK_ASSIGN_OR_RETURN(config.attention_bias, fields.BoolOr("attention_bias", false));
  KVICK_ASSIGN_OR_RETURN(config.mlp_bias, fields.BoolOr("mlp_bias", false));
  KVICK_RETURN_IF_ERROR(ReadTokenIds(fields, config));
  return config;
}

}  // namespace

Result<LlamaConfig> LlamaConfigFromHf(const Json& config, std::string_view source) {
  if (!config.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an object, got {}", source, JsonText(config));
  }
  return ReadConfig(JsonMembers(config)).map_error(WithSource(source));
}

Result<std::optional<std::vector<int32_t>>> EosIdsFromHf(const Json& generation_config,
                                                         int64_t vocab_size,
                                                         std::string_view source) {
  return EosIds(JsonMembers(generation_config), vocab_size).map_error(WithSource(source));
}

}  // namespace kvick
