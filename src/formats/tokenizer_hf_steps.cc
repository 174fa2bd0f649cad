#include "formats/tokenizer_hf_steps.h"

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/json_member.h"
#include "formats/piece_spelling.h"
#include "formats/pretokenizer.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using nlohmann::json;

struct Reader {
  TokenizerData* data;
  bool has_byte_level = false;
  bool has_space_markers = false;
};

// Calls `read(step, type, label)` for the step, or for each of a Sequence of steps.
template <class Read>
Status ForEachStep(const json* step, std::string_view label, std::string_view sequence_key,
                   Read read) {
  if (!step) return {};
  KVICK_ASSIGN_OR_RETURN(const std::string type, NeedString(*step, "type", label));
  if (type != "Sequence") return read(*step, type, label);
  KVICK_ASSIGN_OR_RETURN(const json* steps, NeedArray(*step, sequence_key, label));
  for (const json& inner : *steps) {
    KVICK_RETURN_IF_ERROR(ForEachStep(&inner, label, sequence_key, read));
  }
  return {};
}

tl::unexpected<Error> UnsupportedStep(std::string_view label, std::string_view type,
                                      std::string_view supported) {
  return Fail(ErrorCode::kUnsupported, "the {} has a step {}, supported are {}", label,
              Quoted(type), supported);
}

Status NeedSpaceMarker(const json& step, std::string_view key, std::string_view label) {
  KVICK_ASSIGN_OR_RETURN(const std::string marker, NeedString(step, key, label));
  if (marker == kSpaceMarker) return {};
  return Fail(ErrorCode::kUnsupported, "{}.{} is {}, supported is U+2581", label, key,
              Quoted(marker));
}

Status ReadNormalizer(const json& step, std::string_view type, std::string_view label,
                      Reader* reader) {
  if (type == "NFC") return {};
  if (type == "Prepend") {
    KVICK_RETURN_IF_ERROR(NeedSpaceMarker(step, "prepend", label));
    reader->data->space_prefix = SpacePrefix::kEveryStretch;
  } else if (type == "Replace") {
    KVICK_ASSIGN_OR_RETURN(const json* pattern, NeedObject(step, "pattern", label));
    KVICK_ASSIGN_OR_RETURN(const std::string text, StringOr(*pattern, "String", "", label));
    if (text != " ") {
      return Fail(ErrorCode::kUnsupported, "the {} replaces {}, supported is a space", label,
                  Quoted(text));
    }
    KVICK_RETURN_IF_ERROR(NeedSpaceMarker(step, "content", label));
  } else {
    return UnsupportedStep(label, type, "NFC, Prepend, Replace and Sequence");
  }
  reader->has_space_markers = true;
  return {};
}

Status ReadByteLevel(const json& step, std::string_view label, Reader* reader) {
  KVICK_ASSIGN_OR_RETURN(const bool add_space, BoolOr(step, "add_prefix_space", true, label));
  KVICK_ASSIGN_OR_RETURN(const bool use_regex, BoolOr(step, "use_regex", true, label));
  if (add_space) {
    if (!reader->data->split_patterns.empty()) {
      return Fail(ErrorCode::kUnsupported,
                  "{}: ByteLevel adds a space to each word of a Split before it", label);
    }
    reader->data->space_prefix = SpacePrefix::kEveryStretchUnlessSpace;
  }
  if (use_regex) reader->data->split_patterns.emplace_back(kGpt2Pattern);
  reader->has_byte_level = true;
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
Status ReadSplit(const json& step, std::string_view label, Reader* reader) {
  KVICK_ASSIGN_OR_RETURN(const std::string behavior, NeedString(step, "behavior", label));
  KVICK_ASSIGN_OR_RETURN(const bool invert, BoolOr(step, "invert", false, label));
  if (behavior != "Isolated" && !(behavior == "Removed" && invert)) {
    return Fail(ErrorCode::kUnsupported, "{}: the behavior of a Split is {}, supported is Isolated",
                label, Quoted(behavior));
  }
  KVICK_ASSIGN_OR_RETURN(const json* pattern, NeedObject(step, "pattern", label));
  if (FindMember(*pattern, "String")) {
    KVICK_ASSIGN_OR_RETURN(const std::string text, NeedString(*pattern, "String", label));
    reader->data->split_patterns.push_back(EscapeRegex(text));
    return {};
  }
  KVICK_ASSIGN_OR_RETURN(std::string regex, NeedString(*pattern, "Regex", label));
  reader->data->split_patterns.push_back(std::move(regex));
  return {};
}

Status ReadDigits(const json& step, std::string_view label, Reader* reader) {
  KVICK_ASSIGN_OR_RETURN(const bool individual, BoolOr(step, "individual_digits", false, label));
  reader->data->split_patterns.push_back(individual ? R"(\p{N})" : R"(\p{N}+)");
  return {};
}

Status ReadMetaspace(const json& step, std::string_view label, Reader* reader) {
  KVICK_RETURN_IF_ERROR(NeedSpaceMarker(step, "replacement", label));
  KVICK_ASSIGN_OR_RETURN(const bool add_space, BoolOr(step, "add_prefix_space", true, label));
  KVICK_ASSIGN_OR_RETURN(const std::string scheme,
                         StringOr(step, "prepend_scheme", add_space ? "always" : "never", label));
  if (scheme == "always") {
    reader->data->space_prefix = SpacePrefix::kEveryStretchUnlessSpace;
  } else if (scheme == "first") {
    reader->data->space_prefix = SpacePrefix::kTextStartUnlessSpace;
  } else if (scheme != "never") {
    return Fail(ErrorCode::kCorrupt, "{}.prepend_scheme is {}, always, first or never is wanted",
                label, Quoted(scheme));
  }
  KVICK_ASSIGN_OR_RETURN(const bool split, BoolOr(step, "split", true, label));
  if (split) reader->data->split_patterns.emplace_back(" [^ ]*");  // a word begins at a space
  reader->has_space_markers = true;
  return {};
}

Status ReadPreTokenizer(const json& step, std::string_view type, std::string_view label,
                        Reader* reader) {
  if (type == "ByteLevel") return ReadByteLevel(step, label, reader);
  if (type == "Split") return ReadSplit(step, label, reader);
  if (type == "Digits") return ReadDigits(step, label, reader);
  if (type == "Metaspace") return ReadMetaspace(step, label, reader);
  return UnsupportedStep(label, type, "ByteLevel, Digits, Metaspace, Split and Sequence");
}

// Appends the ids that a TemplateProcessing gives to the special token that it calls `name`.
Status AppendTemplateIds(const json& step, const std::string& name, std::string_view label,
                         std::vector<int32_t>* ids) {
  KVICK_ASSIGN_OR_RETURN(const json* tokens, NeedObject(step, "special_tokens", label));
  const std::string token_label = fmt::format("{}.special_tokens", label);
  KVICK_ASSIGN_OR_RETURN(const json* token, NeedObject(*tokens, name, token_label));
  KVICK_ASSIGN_OR_RETURN(const json* values, NeedArray(*token, "ids", token_label));
  for (const json& value : *values) {
    constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
    if (!value.is_number_integer() || value < 0 || value > kMax) {
      return Fail(ErrorCode::kCorrupt, "{}: an id of {} is {}, 0 to {} are possible", token_label,
                  Quoted(name), JsonText(value), kMax);
    }
    ids->push_back(value.get<int32_t>());
  }
  return {};
}

Status ReadTemplate(const json& step, std::string_view label, Reader* reader) {
  KVICK_ASSIGN_OR_RETURN(const json* parts, NeedArray(step, "single", label));
  bool after_text = false;
  for (const json& part : *parts) {
    if (FindMember(part, "Sequence")) {
      after_text = true;
      continue;
    }
    KVICK_ASSIGN_OR_RETURN(const json* token, NeedObject(part, "SpecialToken", label));
    KVICK_ASSIGN_OR_RETURN(const std::string name, NeedString(*token, "id", label));
    TokenizerData* data = reader->data;
    KVICK_RETURN_IF_ERROR(
        AppendTemplateIds(step, name, label, after_text ? &data->suffix_ids : &data->prefix_ids));
  }
  return {};
}

Status ReadPostProcessor(const json& step, std::string_view type, std::string_view label,
                         Reader* reader) {
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return ReadTemplate(step, label, reader);
  return UnsupportedStep(label, type, "ByteLevel, TemplateProcessing and Sequence");
}

}  // namespace

Status ReadSteps(const json& tokenizer, TokenizerData* data) {
  Reader reader{data};
  const auto with_reader = [&reader](auto read) {
    return [&reader, read](const json& step, std::string_view type, std::string_view label) {
      return read(step, type, label, &reader);
    };
  };
  KVICK_RETURN_IF_ERROR(ForEachStep(FindMember(tokenizer, "normalizer"), "normalizer",
                                    "normalizers", with_reader(ReadNormalizer)));
  KVICK_RETURN_IF_ERROR(ForEachStep(FindMember(tokenizer, "pre_tokenizer"), "pre_tokenizer",
                                    "pretokenizers", with_reader(ReadPreTokenizer)));
  KVICK_RETURN_IF_ERROR(ForEachStep(FindMember(tokenizer, "post_processor"), "post_processor",
                                    "processors", with_reader(ReadPostProcessor)));
  if (reader.has_byte_level == reader.has_space_markers) {
    return Fail(ErrorCode::kUnsupported,
                "the tokenizer is {}, supported is either byte-level or with space markers",
                reader.has_byte_level ? "both byte-level and with space markers"
                                      : "neither byte-level nor with space markers");
  }
  data->spelling = reader.has_byte_level ? PieceSpelling::kByteLevel : PieceSpelling::kSpaceMarkers;
  data->strips_leading_space = reader.has_space_markers && data->space_prefix != SpacePrefix::kNone;
  return {};
}

}  // namespace kvick
