#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/base64.h"
#include "formats/charsmap.h"
#include "formats/quoted.h"
#include "formats/tokenizer_hf_step.h"
#include "formats/tokenizer_hf_steps.h"

namespace kvick {
namespace {

constexpr std::string_view kKnown =
    "ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Sequence, Strip or "
    "StripAccents";

std::optional<NormalizerStep> StepWithoutMembers(std::string_view type) {
  if (type == "NFC") return UnicodeForm::kNfc;
  if (type == "NFD") return UnicodeForm::kNfd;
  if (type == "NFKC") return UnicodeForm::kNfkc;
  if (type == "NFKD") return UnicodeForm::kNfkd;
  if (type == "Lowercase") return LowercaseStep{};
  if (type == "StripAccents") return StripAccentsStep{};
  if (type == "ByteLevel") return SpellBytesStep{};
  return std::nullopt;
}

Result<NormalizerStep> ReadPrecompiled(const JsonMembers& step) {
  constexpr const char* kKey = "precompiled_charsmap";
  KVICK_ASSIGN_OR_RETURN(const std::string text, step.String(kKey));
  const std::optional<std::string> bytes = DecodeBase64(text);
  if (!bytes) {
    return Fail(ErrorCode::kCorrupt, "{}: expected Base64, got {}", step.Label(kKey), Quoted(text));
  }
  KVICK_ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::Parse(*bytes));
  return PrecompiledStep{std::make_shared<const Charsmap>(std::move(charsmap))};
}

Result<NormalizerStep> ReadStep(const JsonMembers& step, std::string_view type) {
  if (const auto simple = StepWithoutMembers(type)) return *simple;
  if (type == "Prepend") {
    KVICK_ASSIGN_OR_RETURN(std::string text, step.String("prepend"));
    return PrependStep{std::move(text)};
  }
  if (type == "Replace") {
    KVICK_ASSIGN_OR_RETURN(TextPattern pattern, ReadHfPattern(step));
    KVICK_ASSIGN_OR_RETURN(std::string content, step.String("content"));
    return ReplaceStep{std::move(pattern), std::move(content)};
  }
  if (type == "Precompiled") return ReadPrecompiled(step);
  if (type == "Strip") {
    KVICK_ASSIGN_OR_RETURN(const bool left, step.BoolOr("strip_left", true));
    KVICK_ASSIGN_OR_RETURN(const bool right, step.BoolOr("strip_right", true));
    return StripStep{left, right};
  }
  return UnsupportedHfStep(step, type, kKnown);
}

}  // namespace

Status ReadHfNormalizer(const nlohmann::json& tokenizer, TokenizerData& data) {
  return ForEachHfStep(tokenizer, {"normalizer", "normalizers"},
                       [&](const JsonMembers& step, std::string_view type) -> Status {
                         KVICK_ASSIGN_OR_RETURN(NormalizerStep read, ReadStep(step, type));
                         data.normalizer.push_back(std::move(read));
                         return {};
                       });
}

}  // namespace kvick
