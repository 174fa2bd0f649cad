#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizer_hf_step.h"
#include "formats/tokenizer_hf_steps.h"

namespace kvick {
namespace {

constexpr std::string_view kKnown =
    "BertProcessing, ByteLevel, RobertaProcessing, Sequence or TemplateProcessing";
constexpr size_t kMaxTokensAround = 1024;
constexpr IntRange kIds{0, std::numeric_limits<int32_t>::max()};

// Appends the ids that a TemplateProcessing gives to the special token that it calls `name`.
Status AppendTemplateIds(const JsonMembers& step, const std::string& name,
                         std::vector<int32_t>& ids) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* object, step.Object("special_tokens"));
  const JsonMembers tokens(*object, step.Label("special_tokens"));
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* token, tokens.Object(name));
  const JsonMembers members(*token, tokens.Label(name));
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* values, members.Array("ids"));
  const std::string label = fmt::format("an element of {}", members.Label("ids"));
  for (const nlohmann::json& value : *values) {
    KVICK_ASSIGN_OR_RETURN(const int64_t id, JsonInt(value, label, kIds));
    ids.push_back(static_cast<int32_t>(id));
  }
  return {};
}

// Puts tokens around what earlier steps made of the text.
void Surround(const std::vector<int32_t>& prefix, const std::vector<int32_t>& suffix,
              TokenizerData& data) {
  data.prefix_ids.insert(data.prefix_ids.begin(), prefix.begin(), prefix.end());
  data.suffix_ids.insert(data.suffix_ids.end(), suffix.begin(), suffix.end());
}

Status ReadTemplate(const JsonMembers& step, TokenizerData& data) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* parts, step.Array("single"));
  std::vector<int32_t> prefix, suffix;
  int num_texts = 0;
  for (const nlohmann::json& value : *parts) {
    const JsonMembers part(value, step.Label("single"));
    if (part.Find("Sequence")) {
      ++num_texts;
      continue;
    }
    KVICK_ASSIGN_OR_RETURN(const nlohmann::json* token, part.Object("SpecialToken"));
    KVICK_ASSIGN_OR_RETURN(const std::string name,
                           JsonMembers(*token, part.Label("SpecialToken")).String("id"));
    KVICK_RETURN_IF_ERROR(AppendTemplateIds(step, name, num_texts > 0 ? suffix : prefix));
    if (prefix.size() + suffix.size() > kMaxTokensAround) {
      return Fail(ErrorCode::kUnsupported,
                  "{}: expected at most {} tokens around the text, got more", step.Label("single"),
                  kMaxTokensAround);
    }
  }
  if (num_texts != 1) {
    return Fail(ErrorCode::kUnsupported, "{}: expected one Sequence, got {}", step.Label("single"),
                num_texts);
  }
  Surround(prefix, suffix, data);
  return {};
}

// ["</s>", 2]
Result<int32_t> ReadPairId(const JsonMembers& step, std::string_view key) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* pair, step.Array(key));
  if (pair->size() != 2) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a token and its id, got {} values",
                step.Label(key), pair->size());
  }
  KVICK_ASSIGN_OR_RETURN(const int64_t id, JsonInt((*pair)[1], step.Label(key), kIds));
  return static_cast<int32_t>(id);
}

}  // namespace

Status ReadHfPostProcessor(const nlohmann::json& tokenizer, TokenizerData& data) {
  return ForEachHfStep(tokenizer, {"post_processor", "processors"},
                       [&](const JsonMembers& step, std::string_view type) -> Status {
                         if (type == "ByteLevel") return {};  // moves offsets alone
                         if (type == "TemplateProcessing") return ReadTemplate(step, data);
                         if (type != "RobertaProcessing" && type != "BertProcessing") {
                           return UnsupportedHfStep(step, type, kKnown);
                         }
                         KVICK_ASSIGN_OR_RETURN(const int32_t first, ReadPairId(step, "cls"));
                         KVICK_ASSIGN_OR_RETURN(const int32_t last, ReadPairId(step, "sep"));
                         Surround({first}, {last}, data);
                         return {};
                       });
}

}  // namespace kvick
