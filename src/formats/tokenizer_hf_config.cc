#include "formats/tokenizer_hf_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using nlohmann::json;

constexpr const char* kAddedTokensKey = "added_tokens_decoder";
constexpr const char* kNamedTokenKeys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token"};

// "<s>" or {"content": "<s>", ...}; a bare string is a special token that is not normalized.
Result<AddedToken> ReadNamedToken(const json& value, const std::string& label) {
  AddedToken token;
  if (value.is_string()) {
    token.content = value.get<std::string>();
  } else {
    KVICK_ASSIGN_OR_RETURN(token, ReadHfAddedToken(JsonMembers(value, label)));
  }
  token.special = true;
  return token;
}

Result<int32_t> ParseId(const std::string& text, IntRange range) {
  const std::string label = fmt::format("{}: the id {}", kAddedTokensKey, Quoted(text));
  int64_t id = -1;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc() || parsed != end || text.empty()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an integer", label);
  }
  KVICK_RETURN_IF_ERROR(CheckRange(label, id, range));
  return static_cast<int32_t>(id);
}

// In the order of their ids, as transformers adds them.
Status AddTokens(const JsonMembers& config, const std::vector<AddedToken>& named,
                 HfVocabularyReader& vocabulary) {
  if (config.Find(kAddedTokensKey) == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const json* entries, config.Object(kAddedTokensKey));
  std::vector<std::string_view> special;
  for (const AddedToken& token : named) special.push_back(token.content);
  std::ranges::sort(special);
  std::map<int32_t, AddedToken> tokens;
  for (const auto& [text, value] : entries->items()) {
    KVICK_ASSIGN_OR_RETURN(const int32_t id, ParseId(text, vocabulary.id_range()));
    const JsonMembers members(value, fmt::format("{}.{}", kAddedTokensKey, id));
    KVICK_ASSIGN_OR_RETURN(AddedToken token, ReadHfAddedToken(members));
    token.id = id;
    token.special = token.special || std::ranges::binary_search(special, token.content);
    tokens.emplace(id, std::move(token));
  }
  for (auto& [id, token] : tokens) {
    const std::string label = fmt::format("{}.{}", kAddedTokensKey, id);
    KVICK_RETURN_IF_ERROR(vocabulary.AddToken(std::move(token), label));
  }
  return {};
}

// Tokens of the vocabulary that are special by name alone.
Status AddNamedTokens(const std::vector<AddedToken>& named, HfVocabularyReader& vocabulary) {
  for (AddedToken token : named) {
    const std::optional<int32_t> id = vocabulary.Find(token.content);
    if (!id || vocabulary.IsAdded(*id)) continue;
    token.id = *id;
    KVICK_RETURN_IF_ERROR(vocabulary.AddToken(std::move(token), "special token"));
  }
  return {};
}

Result<std::optional<int32_t>> FindNamed(const JsonMembers& config, const char* key,
                                         const HfVocabularyReader& vocabulary) {
  const json* value = config.Find(key);
  if (value == nullptr) return std::nullopt;
  KVICK_ASSIGN_OR_RETURN(const AddedToken token, ReadNamedToken(*value, config.Label(key)));
  return vocabulary.Find(token.content);
}

// Whether `ids` hold exactly that token or none; nothing changes where neither the config nor its
// class says.
struct Switch {
  const char* key;
  std::optional<bool> default_value;
  std::optional<int32_t> token;
};
Status ApplySwitch(const JsonMembers& config, const Switch& choice, std::vector<int32_t>& ids) {
  if (!config.Find(choice.key) && !choice.default_value) return {};
  KVICK_ASSIGN_OR_RETURN(const bool is_on,
                         config.BoolOr(choice.key, choice.default_value.value_or(false)));
  if (!is_on) {
    ids.clear();
  } else if (choice.token) {
    ids = {*choice.token};
  }
  return {};
}

bool ReplacesPostProcessor(std::string_view tokenizer_class) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  return tokenizer_class == "LlamaTokenizer" || tokenizer_class == "CodeLlamaTokenizer" ||
         tokenizer_class == "GemmaTokenizer" || tokenizer_class == "CohereTokenizer";
}

Status ReadSurroundings(const JsonMembers& config, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const std::string name, config.StringOr("tokenizer_class", ""));
  const bool replaces = ReplacesPostProcessor(name);
  if (!replaces && !name.empty()) return {};
  Switch bos{"add_bos_token", std::nullopt, data.bos_id};
  Switch eos{"add_eos_token", std::nullopt, data.eos_id};
  if (replaces) {
    bos.default_value = true;
    eos.default_value = false;
  }
  KVICK_RETURN_IF_ERROR(ApplySwitch(config, bos, data.prefix_ids));
  return ApplySwitch(config, eos, data.suffix_ids);
}

}  // namespace

Result<std::vector<AddedToken>> ReadHfNamedTokens(const JsonMembers& config) {
  std::vector<AddedToken> tokens;
  for (const char* key : kNamedTokenKeys) {
    const json* value = config.Find(key);
    if (value == nullptr) continue;
    KVICK_ASSIGN_OR_RETURN(AddedToken token, ReadNamedToken(*value, config.Label(key)));
    tokens.push_back(std::move(token));
  }
  KVICK_ASSIGN_OR_RETURN(const json* more, config.ArrayOrNull("additional_special_tokens"));
  for (size_t i = 0; more != nullptr && i < more->size(); ++i) {
    const std::string label = fmt::format("additional_special_tokens[{}]", i);
    KVICK_ASSIGN_OR_RETURN(AddedToken token, ReadNamedToken((*more)[i], label));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

size_t NumHfConfigTokens(const json& config) {
  const json* tokens = JsonMembers(config).Find(kAddedTokensKey);
  return tokens != nullptr ? tokens->size() : 0;
}

Status ReadHfConfig(const json& value, HfVocabularyReader& vocabulary, TokenizerData& data) {
  const JsonMembers config(value);
  KVICK_ASSIGN_OR_RETURN(const std::vector<AddedToken> named, ReadHfNamedTokens(config));
  KVICK_RETURN_IF_ERROR(AddTokens(config, named, vocabulary));
  KVICK_RETURN_IF_ERROR(AddNamedTokens(named, vocabulary));
  KVICK_ASSIGN_OR_RETURN(data.bos_id, FindNamed(config, "bos_token", vocabulary));
  KVICK_ASSIGN_OR_RETURN(data.eos_id, FindNamed(config, "eos_token", vocabulary));
  return ReadSurroundings(config, data);
}

}  // namespace kvick
