#include <string>
#include <string_view>
#include <utility>

#include "formats/piece_spelling.h"
#include "formats/quoted.h"
#include "formats/tokenizer_hf_step.h"
#include "formats/tokenizer_hf_steps.h"

namespace kvick {
namespace {

constexpr std::string_view kKnown =
    "ByteLevel, Digits, Metaspace, Punctuation, Sequence, Split, Whitespace or WhitespaceSplit";

Result<SplitBehavior> ReadBehavior(const JsonMembers& step, std::string_view fallback) {
  KVICK_ASSIGN_OR_RETURN(const std::string name, step.StringOr("behavior", fallback));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return Fail(ErrorCode::kCorrupt,
              "{}: expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous, "
              "got {}",
              step.Label("behavior"), Quoted(name));
}

Result<PreTokenizerStep> ReadSplit(const JsonMembers& step) {
  KVICK_ASSIGN_OR_RETURN(TextPattern pattern, ReadHfPattern(step));
  KVICK_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(step, ""));
  KVICK_ASSIGN_OR_RETURN(const bool invert, step.BoolOr("invert", false));
  return SplitStep{std::move(pattern), behavior, invert};
}

Result<PreTokenizerStep> ReadByteLevel(const JsonMembers& step) {
  ByteLevelStep result;
  KVICK_ASSIGN_OR_RETURN(result.add_prefix_space, step.BoolOr("add_prefix_space", true));
  KVICK_ASSIGN_OR_RETURN(const bool use_regex, step.BoolOr("use_regex", true));
  if (use_regex) {
    KVICK_ASSIGN_OR_RETURN(result.split, Regex::Compile(kGpt2Pattern));
  }
  return result;
}

Result<PrependScheme> ReadScheme(const JsonMembers& step) {
  KVICK_ASSIGN_OR_RETURN(const bool add_space, step.BoolOr("add_prefix_space", true));
  KVICK_ASSIGN_OR_RETURN(const std::string name,
                         step.StringOr("prepend_scheme", add_space ? "always" : "never"));
  if (!add_space && name != "never") {
    return Fail(ErrorCode::kCorrupt, "{}: expected \"never\", as add_prefix_space is false, got {}",
                step.Label("prepend_scheme"), Quoted(name));
  }
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return Fail(ErrorCode::kCorrupt, "{}: expected always, first or never, got {}",
              step.Label("prepend_scheme"), Quoted(name));
}

Result<PreTokenizerStep> ReadMetaspace(const JsonMembers& step) {
  MetaspaceStep result;
  KVICK_ASSIGN_OR_RETURN(result.marker, ReadHfCharacter(step, "replacement", kSpaceMarker));
  KVICK_ASSIGN_OR_RETURN(result.scheme, ReadScheme(step));
  KVICK_ASSIGN_OR_RETURN(result.split, step.BoolOr("split", true));
  return result;
}

Result<PreTokenizerStep> ReadStep(const JsonMembers& step, std::string_view type) {
  if (type == "Split") return ReadSplit(step);
  if (type == "ByteLevel") return ReadByteLevel(step);
  if (type == "Metaspace") return ReadMetaspace(step);
  if (type == "Whitespace") return WhitespaceStep{};
  if (type == "WhitespaceSplit") {
    return SplitStep{CharacterClass::kWhiteSpace, SplitBehavior::kRemoved};
  }
  if (type == "Punctuation") {
    KVICK_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(step, "Isolated"));
    return SplitStep{CharacterClass::kPunctuation, behavior};
  }
  if (type == "Digits") {
    KVICK_ASSIGN_OR_RETURN(const bool individual, step.BoolOr("individual_digits", false));
    return SplitStep{CharacterClass::kNumeric,
                     individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous};
  }
  return UnsupportedHfStep(step, type, kKnown);
}

}  // namespace

Status ReadHfPreTokenizer(const nlohmann::json& tokenizer, TokenizerData& data) {
  return ForEachHfStep(tokenizer, {"pre_tokenizer", "pretokenizers"},
                       [&](const JsonMembers& step, std::string_view type) -> Status {
                         KVICK_ASSIGN_OR_RETURN(PreTokenizerStep read, ReadStep(step, type));
                         data.pretokenizer.push_back(std::move(read));
                         return {};
                       });
}

}  // namespace kvick
