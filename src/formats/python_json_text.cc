#include "formats/python_json_text.h"

#include <cctype>
#include <limits>
#include <utility>

namespace kvick {
namespace {

// Whether a byte may stand beside a word's letters in one token: "NaNs", "-NaN", "1NaN".
bool GoesOnAToken(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}

// Behind the string that begins at `position`, or the end of the text.
size_t EndOfString(std::string_view text, size_t position) {
  for (size_t i = position + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

PythonJsonText::PythonJsonText(std::string_view text) : text_(text), word_(FindWord(0)) {}

std::optional<double> PythonJsonText::TakeWord() { return std::exchange(passed_, std::nullopt); }

// "0.0" for NaN, "-0.000000" for -Infinity.
char PythonJsonText::MaskAt(size_t position) const {
  const size_t first_digit = text_[word_.begin] == '-' ? word_.begin + 1 : word_.begin;
  if (position < first_digit) return '-';
  return position == first_digit + 1 ? '.' : '0';
}

PythonJsonText::Word PythonJsonText::FindWord(size_t position) const {
  while (position < text_.size()) {
    const char c = text_[position];
    if (c == '"') {
      position = EndOfString(text_, position);
      continue;
    }
    if (c == 'N' || c == 'I' || c == '-') {
      if (const auto word = WordAt(position)) return *word;
    }
    ++position;
  }
  return {text_.size() + 1, text_.size() + 1, 0.0};
}

std::optional<PythonJsonText::Word> PythonJsonText::WordAt(size_t position) const {
  using Limits = std::numeric_limits<double>;
  static constexpr std::pair<std::string_view, double> kWords[] = {
      {"NaN", Limits::quiet_NaN()},
      {"Infinity", Limits::infinity()},
      {"-Infinity", -Limits::infinity()}};
  if (position > 0 && GoesOnAToken(text_[position - 1])) return std::nullopt;
  for (const auto& [name, value] : kWords) {
    const size_t end = position + name.size();
    if (text_.substr(position, name.size()) != name) continue;
    if (end < text_.size() && GoesOnAToken(text_[end])) continue;
    return Word{position, end, value};
  }
  return std::nullopt;
}

void PythonJsonText::PassWord() {
  passed_ = word_.value;
  word_ = FindWord(word_.end);
}

}  // namespace kvick
