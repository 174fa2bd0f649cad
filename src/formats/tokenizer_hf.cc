#include "formats/tokenizer_hf.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"
#include "formats/tokenizer_hf_steps.h"

namespace kvick {
namespace {

using nlohmann::json;

// Holes in the vocabulary cost memory, so the file must have tokens to justify them.
int64_t MaxTokens(size_t num_entries) { return 2 * static_cast<int64_t>(num_entries) + 1024; }

// Makes room for token `id`; new places are holes.
void Grow(size_t id, TokenizerData& data) {
  if (id < data.pieces.size()) return;
  data.pieces.resize(id + 1);
  data.types.resize(id + 1, TokenType::kUnused);
}

Status ReadVocabulary(const json& vocabulary, bool byte_fallback, IntRange ids,
                      TokenizerData& data) {
  for (const auto& [piece, value] : vocabulary.items()) {
    const std::string label = "model.vocab: the id of " + Quoted(piece);
    KVICK_ASSIGN_OR_RETURN(const int64_t number, JsonInt(value, label, ids));
    const auto id = static_cast<size_t>(number);
    Grow(id, data);
    if (data.types[id] != TokenType::kUnused) {
      return Fail(ErrorCode::kCorrupt, "model.vocab: {} and {} have the same id {}",
                  Quoted(data.pieces[id]), Quoted(piece), id);
    }
    data.pieces[id] = piece;
    const bool is_byte = byte_fallback && ParseBytePiece(piece).has_value();
    data.types[id] = is_byte ? TokenType::kByte : TokenType::kNormal;
  }
  return {};
}

Status ReadAddedTokens(const json& added_tokens, IntRange ids, TokenizerData& data) {
  for (size_t i = 0; i < added_tokens.size(); ++i) {
    const std::string label = fmt::format("added_tokens[{}]", i);
    const JsonMembers token(added_tokens[i], label);
    KVICK_ASSIGN_OR_RETURN(const std::string content, token.String("content"));
    KVICK_ASSIGN_OR_RETURN(const bool special, token.BoolOr("special", false));
    KVICK_ASSIGN_OR_RETURN(const int64_t number, token.Int("id", ids));
    const auto id = static_cast<size_t>(number);
    Grow(id, data);
    if (data.types[id] != TokenType::kUnused && data.pieces[id] != content) {
      return Fail(ErrorCode::kCorrupt, "{}: {} has the id {}, which is that of {}", label,
                  Quoted(content), id, Quoted(data.pieces[id]));
    }
    data.pieces[id] = content;
    data.types[id] = special ? TokenType::kControl : TokenType::kUserDefined;
  }
  return {};
}

// A merge is "left right" or ["left", "right"].
Result<MergeRule> ReadMerge(const json& merge) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ', 1);
    if (space != std::string::npos && space + 1 < text.size()) {
      return MergeRule{text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return MergeRule{merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  return Fail(ErrorCode::kCorrupt, "a merge is {}, a pair of pieces is wanted", JsonText(merge));
}

Result<std::vector<MergeRule>> ReadMerges(const json& merges) {
  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  for (const json& merge : merges) {
    KVICK_ASSIGN_OR_RETURN(MergeRule rule, ReadMerge(merge));
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::optional<int32_t> FindPiece(const TokenizerData& data, std::string_view piece) {
  for (size_t i = 0; i < data.pieces.size(); ++i) {
    if (data.pieces[i] == piece && data.types[i] != TokenType::kUnused) {
      return static_cast<int32_t>(i);
    }
  }
  return std::nullopt;
}

// Refuses what would encode in a way that kvick does not know.
Status CheckModelType(const JsonMembers& model) {
  KVICK_ASSIGN_OR_RETURN(const std::string type, model.StringOr("type", "BPE"));
  if (type != "BPE") {
    return Fail(ErrorCode::kUnsupported, "{} is {}, only \"BPE\" is possible", model.Label("type"),
                Quoted(type));
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    KVICK_ASSIGN_OR_RETURN(const std::string affix, model.StringOr(key, ""));
    if (affix.empty()) continue;
    return Fail(ErrorCode::kUnsupported, "{} is {}, only \"\" is possible", model.Label(key),
                Quoted(affix));
  }
  return {};
}

Status ReadModel(const JsonMembers& tokenizer, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const json* object, tokenizer.Object("model"));
  const JsonMembers model(*object, "model");
  KVICK_RETURN_IF_ERROR(CheckModelType(model));
  KVICK_ASSIGN_OR_RETURN(const bool byte_fallback, model.BoolOr("byte_fallback", false));
  KVICK_ASSIGN_OR_RETURN(data.whole_words_first, model.BoolOr("ignore_merges", false));
  KVICK_ASSIGN_OR_RETURN(data.fuse_unknown, model.BoolOr("fuse_unk", false));
  KVICK_ASSIGN_OR_RETURN(const json* vocabulary, model.Object("vocab"));
  KVICK_ASSIGN_OR_RETURN(const json* merges, model.Array("merges"));
  KVICK_ASSIGN_OR_RETURN(const json* added_tokens, tokenizer.ArrayOrNull("added_tokens"));
  const size_t num_added = added_tokens ? added_tokens->size() : 0;
  const IntRange ids{0, MaxTokens(vocabulary->size() + num_added) - 1};
  KVICK_RETURN_IF_ERROR(ReadVocabulary(*vocabulary, byte_fallback, ids, data));
  if (added_tokens) KVICK_RETURN_IF_ERROR(ReadAddedTokens(*added_tokens, ids, data));
  KVICK_ASSIGN_OR_RETURN(data.merges, ReadMerges(*merges));
  KVICK_ASSIGN_OR_RETURN(const std::string unknown, model.StringOr("unk_token", ""));
  if (!unknown.empty()) data.unknown_id = FindPiece(data, unknown);
  return {};
}

// A special token of tokenizer_config.json: "<s>", {"content": "<s>"} or null.
Result<std::optional<int32_t>> NamedToken(const JsonMembers& config, const std::string& key,
                                          const TokenizerData& data) {
  const json* value = config.Find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return FindPiece(data, value->get_ref<const std::string&>());
  KVICK_ASSIGN_OR_RETURN(const std::string content, JsonMembers(*value, key).String("content"));
  return FindPiece(data, content);
}

// Where `key` is given, it decides whether `ids` hold exactly that token or none.
Status ApplySwitch(const JsonMembers& config, std::string_view key, std::optional<int32_t> token,
                   std::vector<int32_t>& ids) {
  if (!config.Find(key)) return {};
  KVICK_ASSIGN_OR_RETURN(const bool is_on, config.BoolOr(key, false));
  if (!is_on) {
    ids.clear();
  } else if (token && ids.empty()) {
    ids.push_back(*token);
  }
  return {};
}

Status ReadConfig(const json& json_config, TokenizerData& data) {
  if (json_config.is_null()) {
    if (data.prefix_ids.size() == 1) data.bos_id = data.prefix_ids[0];
    return {};
  }
  const JsonMembers config(json_config);
  KVICK_ASSIGN_OR_RETURN(data.bos_id, NamedToken(config, "bos_token", data));
  KVICK_ASSIGN_OR_RETURN(data.eos_id, NamedToken(config, "eos_token", data));
  KVICK_RETURN_IF_ERROR(ApplySwitch(config, "add_bos_token", data.bos_id, data.prefix_ids));
  return ApplySwitch(config, "add_eos_token", data.eos_id, data.suffix_ids);
}

Result<TokenizerData> ReadTokenizerData(const json& tokenizer, const json& config) {
  TokenizerData data;
  data.merge_order = MergeOrder::kByRank;
  KVICK_RETURN_IF_ERROR(ReadSteps(tokenizer, data));
  KVICK_RETURN_IF_ERROR(ReadModel(JsonMembers(tokenizer), data));
  KVICK_RETURN_IF_ERROR(ReadConfig(config, data));
  return data;
}

}  // namespace

Result<Tokenizer> TokenizerFromHfJson(const json& tokenizer, const json& config) {
  if (!tokenizer.is_object()) {
    return Fail(ErrorCode::kCorrupt, "tokenizer.json is {}, an object is wanted",
                JsonText(tokenizer));
  }
  if (!config.is_null() && !config.is_object()) {
    return Fail(ErrorCode::kCorrupt, "tokenizer_config.json is {}, an object is wanted",
                JsonText(config));
  }
  KVICK_ASSIGN_OR_RETURN(TokenizerData data, ReadTokenizerData(tokenizer, config));
  return Tokenizer::Create(std::move(data));
}

Result<Tokenizer> TokenizerFromHf(const std::string& tokenizer_path,
                                  const std::optional<std::string>& config_path) {
  KVICK_ASSIGN_OR_RETURN(const json tokenizer, ReadJsonFile(tokenizer_path));
  json config;
  if (config_path) {
    KVICK_ASSIGN_OR_RETURN(config, ReadJsonFile(*config_path));
  }
  return TokenizerFromHfJson(tokenizer, config).map_error(WithSource(tokenizer_path));
}

}  // namespace kvick
