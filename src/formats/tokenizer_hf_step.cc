#include "formats/tokenizer_hf_step.h"

#include <utility>

#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick {

tl::unexpected<Error> UnsupportedHfStep(const JsonMembers& step, std::string_view type,
                                        std::string_view known) {
  return Fail(ErrorCode::kUnsupported, "{}: expected {}, got {}", step.Label("type"), known,
              Quoted(type));
}

Result<TextPattern> ReadHfPattern(const JsonMembers& step) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json* object, step.Object("pattern"));
  const std::string label = step.Label("pattern");
  const JsonMembers pattern(*object, label);
  const auto with_label = [&](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", label, error.message)};
  };
  if (pattern.Find("String")) {
    KVICK_ASSIGN_OR_RETURN(std::string string, pattern.String("String"));
    return TextPattern::FromString(std::move(string)).map_error(with_label);
  }
  KVICK_ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
  return TextPattern::FromRegex(regex).map_error(with_label);
}

Result<std::string> ReadHfCharacter(const JsonMembers& step, std::string_view key,
                                    std::string_view fallback) {
  KVICK_ASSIGN_OR_RETURN(std::string character, step.StringOr(key, fallback));
  if (character.empty() || NextUtf8(character).num_bytes != character.size()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected one character, got {}", step.Label(key),
                Quoted(character));
  }
  return character;
}

Status HfStepCounter::Count(std::string_view key) {
  constexpr int kMaxSteps = 64;
  if (++num_steps_ <= kMaxSteps) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected at most {} steps, got more", key, kMaxSteps);
}

}  // namespace kvick
