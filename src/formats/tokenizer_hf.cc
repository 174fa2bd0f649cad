#include "formats/tokenizer_hf.h"

#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"
#include "formats/tokenizer_hf_config.h"
#include "formats/tokenizer_hf_steps.h"
#include "formats/tokenizer_hf_vocabulary.h"

namespace kvick {
namespace {

using nlohmann::json;

// Holes in the vocabulary cost memory, so the files must have tokens to justify them.
size_t MaxTokens(size_t num_entries) { return 2 * num_entries + 1024; }

size_t NumEntries(const JsonMembers& tokenizer, const json* added_tokens, const json& config) {
  const json* model = tokenizer.Find("model");
  const json* vocabulary = model != nullptr ? JsonMembers(*model).Find("vocab") : nullptr;
  return (vocabulary != nullptr ? vocabulary->size() : 0) +
         (added_tokens != nullptr ? added_tokens->size() : 0) + NumHfConfigTokens(config);
}

Status ReadAddedTokens(const json& tokens, HfVocabularyReader& vocabulary) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string label = fmt::format("added_tokens[{}]", i);
    const JsonMembers members(tokens[i], label);
    KVICK_ASSIGN_OR_RETURN(AddedToken token, ReadHfAddedToken(members));
    KVICK_ASSIGN_OR_RETURN(const int64_t id, members.Int("id", vocabulary.id_range()));
    token.id = static_cast<int32_t>(id);
    KVICK_RETURN_IF_ERROR(vocabulary.AddToken(std::move(token), label));
  }
  return {};
}

Status ReadUnknown(const JsonMembers& tokenizer, const HfVocabularyReader& vocabulary,
                   TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const json* object, tokenizer.Object("model"));
  const JsonMembers model(*object, "model");
  KVICK_ASSIGN_OR_RETURN(const std::string unknown, model.StringOr("unk_token", ""));
  if (unknown.empty()) return {};
  data.unknown_id = vocabulary.Find(unknown);
  if (data.unknown_id) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected a token of the vocabulary, got {}",
              model.Label("unk_token"), Quoted(unknown));
}

Result<TokenizerData> ReadTokenizerData(const json& value, const json& config) {
  TokenizerData data;
  data.encoder = EncoderKind::kMergesByRank;
  KVICK_RETURN_IF_ERROR(ReadHfNormalizer(value, data));
  KVICK_RETURN_IF_ERROR(ReadHfPreTokenizer(value, data));
  KVICK_RETURN_IF_ERROR(ReadHfPostProcessor(value, data));
  KVICK_RETURN_IF_ERROR(ReadHfDecoder(value, data));
  const JsonMembers tokenizer(value);
  KVICK_ASSIGN_OR_RETURN(const json* model, tokenizer.Object("model"));
  KVICK_ASSIGN_OR_RETURN(const json* added_tokens, tokenizer.ArrayOrNull("added_tokens"));
  HfVocabularyReader vocabulary(data, MaxTokens(NumEntries(tokenizer, added_tokens, config)));
  KVICK_RETURN_IF_ERROR(vocabulary.ReadModel(*model));
  if (added_tokens) KVICK_RETURN_IF_ERROR(ReadAddedTokens(*added_tokens, vocabulary));
  KVICK_RETURN_IF_ERROR(ReadUnknown(tokenizer, vocabulary, data));
  if (config.is_null()) {
    if (data.prefix_ids.size() == 1) data.bos_id = data.prefix_ids[0];
    return data;
  }
  KVICK_RETURN_IF_ERROR(ReadHfConfig(config, vocabulary, data));
  return data;
}

}  // namespace

Result<Tokenizer> TokenizerFromHfJson(const json& tokenizer, const json& config) {
  if (!tokenizer.is_object()) {
    return Fail(ErrorCode::kCorrupt, "tokenizer.json: expected an object, got {}",
                JsonText(tokenizer));
  }
  if (!config.is_null() && !config.is_object()) {
    return Fail(ErrorCode::kCorrupt, "tokenizer_config.json: expected an object, got {}",
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
