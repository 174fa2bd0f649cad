#ifndef KVICK_FORMATS_TEXT_PATTERN_H_
#define KVICK_FORMATS_TEXT_PATTERN_H_

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/regex.h"
#include "kvick/status.h"

namespace kvick {

// What a step of a tokenizer looks for: a string or a regular expression.
class TextPattern {
 public:
  // Errors  unsupported: a string of more than 1024 bytes
  static Result<TextPattern> FromString(std::string string);
  // Errors  as Regex::Compile
  static Result<TextPattern> FromRegex(std::string_view pattern);

  // Appends the matches in `text`, as Regex::FindAll does. Errors  likewise.
  Status FindAll(std::string_view text, RegexWork& work, std::vector<TextSpan>& matches) const;

 private:
  explicit TextPattern(std::variant<std::string, Regex> pattern) : pattern_(std::move(pattern)) {}

  std::variant<std::string, Regex> pattern_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TEXT_PATTERN_H_
