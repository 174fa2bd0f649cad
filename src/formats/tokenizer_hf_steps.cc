#include "formats/tokenizer_hf_steps.h"

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/json_members.h"
#include "formats/piece_spelling.h"
#include "formats/pretokenizer.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using nlohmann::json;

struct Reader {
  TokenizerData& data;
  bool has_byte_level = false;
  bool has_space_markers = false;
};

using ReadStep = Status (*)(const JsonMembers& step, std::string_view type, Reader& reader);

// Where a kind of steps stands in the document, the name of a list of them, and what reads one.
struct StepKind {
  const char* key;
  const char* sequence_key;
  ReadStep read;
};

Status ReadStepOrSequence(const json& value, const StepKind& kind, Reader& reader) {
  const JsonMembers step(value, kind.key);
  KVICK_ASSIGN_OR_RETURN(const std::string type, step.String("type"));
  if (type != "Sequence") return kind.read(step, type, reader);
  KVICK_ASSIGN_OR_RETURN(const json* inner_steps, step.Array(kind.sequence_key));
  for (const json& inner : *inner_steps) {
    KVICK_RETURN_IF_ERROR(ReadStepOrSequence(inner, kind, reader));
  }
  return {};
}

tl::unexpected<Error> UnsupportedStep(const JsonMembers& step, std::string_view type,
                                      std::string_view possible) {
  return Fail(ErrorCode::kUnsupported, "{} is {}, only {} are possible", step.Label("type"),
              Quoted(type), possible);
}

Status NeedText(const JsonMembers& members, std::string_view key, std::string_view wanted) {
  KVICK_ASSIGN_OR_RETURN(const std::string text, members.String(key));
  if (text == wanted) return {};
  return Fail(ErrorCode::kUnsupported, "{} is {}, only {} is possible", members.Label(key),
              Quoted(text), Quoted(wanted));
}

// The pattern of a Replace or Split.
Result<JsonMembers> NeedPattern(const JsonMembers& step) {
  KVICK_ASSIGN_OR_RETURN(const json* pattern, step.Object("pattern"));
  return JsonMembers(*pattern, step.Label("pattern"));
}

Status ReadNormalizer(const JsonMembers& step, std::string_view type, Reader& reader) {
  if (type == "NFC") return {};
  if (type == "Prepend") {
    KVICK_RETURN_IF_ERROR(NeedText(step, "prepend", kSpaceMarker));
    reader.data.space_prefix = SpacePrefix::kEveryStretch;
  } else if (type == "Replace") {
    KVICK_ASSIGN_OR_RETURN(const JsonMembers pattern, NeedPattern(step));
    if (!pattern.Find("String")) {
      return Fail(ErrorCode::kUnsupported, "{} is missing, only \" \" is possible",
                  pattern.Label("String"));
    }
    KVICK_RETURN_IF_ERROR(NeedText(pattern, "String", " "));
    KVICK_RETURN_IF_ERROR(NeedText(step, "content", kSpaceMarker));
  } else {
    return UnsupportedStep(step, type, "NFC, Prepend, Replace and Sequence");
  }
  reader.has_space_markers = true;
  return {};
}

Status ReadByteLevel(const JsonMembers& step, Reader& reader) {
  KVICK_ASSIGN_OR_RETURN(const bool add_space, step.BoolOr("add_prefix_space", true));
  KVICK_ASSIGN_OR_RETURN(const bool use_regex, step.BoolOr("use_regex", true));
  if (add_space) {
    if (!reader.data.split_patterns.empty()) {
      return Fail(ErrorCode::kUnsupported,
                  "{} is true, only false is possible where a Split comes before",
                  step.Label("add_prefix_space"));
    }
    reader.data.space_prefix = SpacePrefix::kEveryStretchUnlessSpace;
  }
  if (use_regex) reader.data.split_patterns.emplace_back(kGpt2Pattern);
  reader.has_byte_level = true;
  return {};
}

// A regular expression for exactly this text.
std::string EscapeRegex(std::string_view text) {
  constexpr std::string_view kMeta = R"(\^$.[]|()?*+{}#-)";
  std::string result;
  for (char c : text) {
    if (kMeta.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// The words of a Split are its matches and what lies between them. `Removed` with `invert` throws
// the latter away, but is used with expressions that leave nothing between.
Status ReadSplit(const JsonMembers& step, Reader& reader) {
  KVICK_ASSIGN_OR_RETURN(const std::string behavior, step.String("behavior"));
  KVICK_ASSIGN_OR_RETURN(const bool invert, step.BoolOr("invert", false));
  if (behavior != "Isolated" && !(behavior == "Removed" && invert)) {
    return Fail(ErrorCode::kUnsupported, "{} is {}, only \"Isolated\" is possible",
                step.Label("behavior"), Quoted(behavior));
  }
  KVICK_ASSIGN_OR_RETURN(const JsonMembers pattern, NeedPattern(step));
  if (pattern.Find("String")) {
    KVICK_ASSIGN_OR_RETURN(const std::string text, pattern.String("String"));
    reader.data.split_patterns.push_back(EscapeRegex(text));
    return {};
  }
  KVICK_ASSIGN_OR_RETURN(std::string regex, pattern.String("Regex"));
  reader.data.split_patterns.push_back(std::move(regex));
  return {};
}

Status ReadDigits(const JsonMembers& step, Reader& reader) {
  KVICK_ASSIGN_OR_RETURN(const bool individual, step.BoolOr("individual_digits", false));
  reader.data.split_patterns.push_back(individual ? R"(\p{N})" : R"(\p{N}+)");
  return {};
}

Status ReadMetaspace(const JsonMembers& step, Reader& reader) {
  KVICK_RETURN_IF_ERROR(NeedText(step, "replacement", kSpaceMarker));
  KVICK_ASSIGN_OR_RETURN(const bool add_space, step.BoolOr("add_prefix_space", true));
  KVICK_ASSIGN_OR_RETURN(const std::string scheme,
                         step.StringOr("prepend_scheme", add_space ? "always" : "never"));
  if (scheme == "always") {
    reader.data.space_prefix = SpacePrefix::kEveryStretchUnlessSpace;
  } else if (scheme == "first") {
    reader.data.space_prefix = SpacePrefix::kTextStartUnlessSpace;
  } else if (scheme != "never") {
    return Fail(ErrorCode::kCorrupt,
                "{} is {}, only \"always\", \"first\" and \"never\" are possible",
                step.Label("prepend_scheme"), Quoted(scheme));
  }
  KVICK_ASSIGN_OR_RETURN(const bool split, step.BoolOr("split", true));
  if (split) reader.data.split_patterns.emplace_back(" [^ ]*");  // a word begins at a space
  reader.has_space_markers = true;
  return {};
}

Status ReadPreTokenizer(const JsonMembers& step, std::string_view type, Reader& reader) {
  if (type == "ByteLevel") return ReadByteLevel(step, reader);
  if (type == "Split") return ReadSplit(step, reader);
  if (type == "Digits") return ReadDigits(step, reader);
  if (type == "Metaspace") return ReadMetaspace(step, reader);
  return UnsupportedStep(step, type, "ByteLevel, Digits, Metaspace, Split and Sequence");
}

// Appends the ids that a TemplateProcessing gives to the special token that it calls `name`.
Status AppendTemplateIds(const JsonMembers& step, const std::string& name,
                         std::vector<int32_t>& ids) {
  KVICK_ASSIGN_OR_RETURN(const json* object, step.Object("special_tokens"));
  const JsonMembers tokens(*object, step.Label("special_tokens"));
  KVICK_ASSIGN_OR_RETURN(const json* token, tokens.Object(name));
  const JsonMembers members(*token, tokens.Label(name));
  KVICK_ASSIGN_OR_RETURN(const json* values, members.Array("ids"));
  const std::string label = fmt::format("an element of {}", members.Label("ids"));
  for (const json& value : *values) {
    constexpr IntRange kIds{0, std::numeric_limits<int32_t>::max()};
    KVICK_ASSIGN_OR_RETURN(const int64_t id, JsonInt(value, label, kIds));
    ids.push_back(static_cast<int32_t>(id));
  }
  return {};
}

Status ReadTemplate(const JsonMembers& step, Reader& reader) {
  KVICK_ASSIGN_OR_RETURN(const json* parts, step.Array("single"));
  bool after_text = false;
  for (const json& value : *parts) {
    const JsonMembers part(value, step.Label("single"));
    if (part.Find("Sequence")) {
      after_text = true;
      continue;
    }
    KVICK_ASSIGN_OR_RETURN(const json* token, part.Object("SpecialToken"));
    KVICK_ASSIGN_OR_RETURN(const std::string name,
                           JsonMembers(*token, part.Label("SpecialToken")).String("id"));
    KVICK_RETURN_IF_ERROR(AppendTemplateIds(
        step, name, after_text ? reader.data.suffix_ids : reader.data.prefix_ids));
  }
  return {};
}

Status ReadPostProcessor(const JsonMembers& step, std::string_view type, Reader& reader) {
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return ReadTemplate(step, reader);
  return UnsupportedStep(step, type, "ByteLevel, TemplateProcessing and Sequence");
}

constexpr StepKind kStepKinds[] = {{"normalizer", "normalizers", ReadNormalizer},
                                   {"pre_tokenizer", "pretokenizers", ReadPreTokenizer},
                                   {"post_processor", "processors", ReadPostProcessor}};

}  // namespace

Status ReadSteps(const json& tokenizer, TokenizerData& data) {
  Reader reader{data};
  for (const StepKind& kind : kStepKinds) {
    const json* step = JsonMembers(tokenizer).Find(kind.key);
    if (step != nullptr) KVICK_RETURN_IF_ERROR(ReadStepOrSequence(*step, kind, reader));
  }
  if (reader.has_byte_level == reader.has_space_markers) {
    return Fail(ErrorCode::kUnsupported,
                "the tokenizer is {}, only either byte-level or with space markers is possible",
                reader.has_byte_level ? "both byte-level and with space markers"
                                      : "neither byte-level nor with space markers");
  }
  data.spelling = reader.has_byte_level ? PieceSpelling::kByteLevel : PieceSpelling::kSpaceMarkers;
  data.strips_leading_space = reader.has_space_markers && data.space_prefix != SpacePrefix::kNone;
  return {};
}

}  // namespace kvick
