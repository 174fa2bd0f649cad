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
#include "model/arch/read_spec.h"
#include "model/arch/spec_ranges.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> Unsupported(const JsonMembers& fields, std::string_view key,
                                  std::string_view expected) {
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", fields.Label(key), expected,
              JsonText(*fields.Find(key)));
}

Result<const Architecture*> ArchitectureOf(const JsonMembers& fields) {
  constexpr std::string_view kKey = "model_type";
  KVICK_ASSIGN_OR_RETURN(const std::string type, fields.StringOr(kKey, ""));
  if (const Architecture* found = FindHfArchitecture(type)) return found;
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", fields.Label(kKey),
              ArchitectureNames(&Architecture::hf_name), Quoted(type));
}

Status CheckActivation(const JsonMembers& fields, const HfDefaults& defaults) {
  KVICK_ASSIGN_OR_RETURN(const std::string name,
                         fields.StringOr(defaults.activation_key, defaults.activation));
  if (name == defaults.activation || (name == "swish" && defaults.activation == "silu")) return {};
  return Unsupported(fields, defaults.activation_key, fmt::format("\"{}\"", defaults.activation));
}

Status CheckNotQuantized(const JsonMembers& fields) {
  constexpr std::string_view kKey = "quantization_config";
  if (fields.Find(kKey) == nullptr) return {};
  return Unsupported(fields, kKey, "weights of F32, F16 or BF16");
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

Status ReadTokenIds(const JsonMembers& fields, ModelSpec& spec) {
  if (const Json* bos = fields.Find("bos_token_id")) {
    KVICK_ASSIGN_OR_RETURN(spec.bos_id,
                           TokenId(*bos, fields.Label("bos_token_id"), spec.vocab_size));
  }
  KVICK_ASSIGN_OR_RETURN(auto eos_ids, EosIds(fields, spec.vocab_size));
  if (eos_ids) spec.eos_ids = *std::move(eos_ids);
  return {};
}

Status ReadBiases(const JsonMembers& fields, ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(const bool attention_bias, fields.BoolOr("attention_bias", false));
  KVICK_ASSIGN_OR_RETURN(const bool mlp_bias, fields.BoolOr("mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.qkv_bias = layer.o_bias = attention_bias;
    layer.mlp_bias = mlp_bias;
  }
  return {};
}

Result<ModelSpec> ReadConfig(const JsonMembers& members) {
  KVICK_ASSIGN_OR_RETURN(const Architecture* architecture, ArchitectureOf(members));
  KVICK_RETURN_IF_ERROR(CheckActivation(members, architecture->hf_defaults));
  KVICK_RETURN_IF_ERROR(CheckNotQuantized(members));
  const ConfigFields fields(members);
  ModelSpec spec;
  KVICK_ASSIGN_OR_RETURN(spec.name, members.StringOr("_name_or_path", ""));
  KVICK_RETURN_IF_ERROR(ReadSizes(fields, *architecture, spec));
  KVICK_ASSIGN_OR_RETURN(spec.vocab_size, members.Int("vocab_size", kVocabRange));
  KVICK_ASSIGN_OR_RETURN(
      spec.tie_word_embeddings,
      members.BoolOr("tie_word_embeddings", architecture->hf_defaults.tie_word_embeddings));
  KVICK_RETURN_IF_ERROR(ReadBiases(members, spec));
  KVICK_RETURN_IF_ERROR(DescribeLayers(fields, *architecture, spec));
  KVICK_RETURN_IF_ERROR(ReadTokenIds(members, spec));
  return spec;
}

}  // namespace

Result<ModelSpec> ModelSpecFromHf(const Json& config, std::string_view source) {
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
