#include "formats/text_pattern.h"

#include <utility>

#include "base/check.h"

namespace kvick {

Result<TextPattern> TextPattern::FromString(std::string string) {
  constexpr size_t kMaxBytes = 1024;
  if (string.size() > kMaxBytes) {
    return Fail(ErrorCode::kUnsupported, "pattern: expected at most {} bytes, got {}", kMaxBytes,
                string.size());
  }
  if (string.empty()) return FromRegex("");  // which matches between all characters
  return TextPattern(std::move(string));
}

Result<TextPattern> TextPattern::FromRegex(std::string_view pattern) {
  KVICK_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(pattern));
  return TextPattern(std::move(regex));
}

Status TextPattern::FindAll(std::string_view text, RegexWork& work,
                            std::vector<TextSpan>& matches) const {
  if (const auto* regex = std::get_if<Regex>(&pattern_)) {
    return regex->FindAll(text, work, matches);
  }
  const std::string& string = std::get<std::string>(pattern_);
  for (size_t begin = text.find(string); begin != std::string_view::npos;) {
    const size_t end = begin + string.size();
    matches.push_back({begin, end});
    begin = text.find(string, end);
  }
  return {};
}

}  // namespace kvick
