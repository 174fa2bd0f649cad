#include "formats/normalizer.h"

#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

NormalizedText StripWhiteSpace(std::string_view text, const StripStep& step) {
  const size_t num_bytes = text.size();
  while (step.left && !text.empty()) {
    const Utf8Unit unit = NextUtf8(text);
    if (unit.kind != Utf8Kind::kCharacter || !IsWhiteSpace(FirstCharacter(text))) break;
    text.remove_prefix(unit.num_bytes);
  }
  const bool keeps_start = text.size() == num_bytes;
  while (step.right) {
    const std::string_view last = LastCharacter(text);
    if (last.empty() || !IsWhiteSpace(FirstCharacter(last))) break;
    text.remove_suffix(last.size());
  }
  return {std::string(text), keeps_start};
}

NormalizedText StripMarks(std::string_view text) {
  NormalizedText result;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Unit unit = NextUtf8(rest);
    if (unit.kind == Utf8Kind::kCharacter && IsCombiningMark(FirstCharacter(rest))) {
      if (rest.size() == text.size()) result.keeps_start = false;
    } else {
      result.text += rest.substr(0, unit.num_bytes);
    }
    rest.remove_prefix(unit.num_bytes);
  }
  return result;
}

// A replacement comes from the last character that it replaces.
bool KeepsStart(std::string_view text, TextSpan first_match, const std::string& content) {
  if (first_match.begin > 0 || first_match.end == 0) return true;
  return !content.empty() && NextUtf8(text).num_bytes == first_match.end;
}

tl::unexpected<Error> TooLarge() {
  return Fail(ErrorCode::kExhausted, "the tokenizer's normalizer makes the text too large");
}

// Appends characters of a text that SentencePiece normalizes.
class SentencePieceWriter {
 public:
  explicit SentencePieceWriter(const SentencePieceStep& step) : step_(step) {}

  void Append(std::string_view characters) {
    for (const char c : characters) {
      if (c == ' ') {
        in_word_ = false;
        if (!step_.merges_spaces) text_ += step_.space;
        continue;
      }
      if (!in_word_) StartWord();
      text_ += c;
    }
  }

  const std::string& text() const { return text_; }

 private:
  void StartWord() {
    if ((step_.adds_space && !has_word_) || step_.merges_spaces) text_ += step_.space;
    in_word_ = has_word_ = true;
  }

  const SentencePieceStep& step_;
  std::string text_;
  bool in_word_ = false, has_word_ = false;
};

struct Apply {
  std::string_view text;
  RegexWork& work;

  Result<NormalizedText> operator()(UnicodeForm form) const {
    return NormalizedText{NormalizeUnicode(text, form)};
  }
  Result<NormalizedText> operator()(const PrependStep& step) const {
    return NormalizedText{text.empty() ? std::string() : step.text + std::string(text)};
  }
  Result<NormalizedText> operator()(const ReplaceStep& step) const {
    return ReplaceMatches(text, step, work);
  }
  Result<NormalizedText> operator()(const StripStep& step) const {
    return StripWhiteSpace(text, step);
  }
  Result<NormalizedText> operator()(LowercaseStep) const { return NormalizedText{Lowercase(text)}; }
  Result<NormalizedText> operator()(StripAccentsStep) const { return StripMarks(text); }
  Result<NormalizedText> operator()(const PrecompiledStep& step) const {
    auto replaced = step.charsmap->Replace(text, MaxRewrittenBytes(work.text_bytes()));
    if (!replaced) return TooLarge();
    return NormalizedText{*std::move(replaced)};
  }
  Result<NormalizedText> operator()(const SentencePieceStep& step) const {
    SentencePieceWriter writer(step);
    for (std::string_view rest = text; !rest.empty();) {
      const auto entry = step.charsmap ? step.charsmap->FindLongest(rest) : std::nullopt;
      const size_t num_bytes = entry ? entry->num_bytes : CharacterBytes(rest);
      writer.Append(entry ? entry->replacement : rest.substr(0, num_bytes));
      if (writer.text().size() > MaxRewrittenBytes(work.text_bytes())) return TooLarge();
      rest.remove_prefix(num_bytes);
    }
    return NormalizedText{writer.text()};
  }
  Result<NormalizedText> operator()(SpellBytesStep) const {
    NormalizedText result;
    SpellBytes(text, result.text);
    return result;
  }
};

}  // namespace

Result<NormalizedText> ReplaceMatches(std::string_view text, const ReplaceStep& step,
                                      RegexWork& work) {
  NormalizedText result;
  std::vector<TextSpan> matches;
  Status status;
  ForEachUtf8Stretch(
      text,
      [&](std::string_view stretch) {
        if (!status) return;
        matches.clear();
        status = step.pattern.FindAll(stretch, work, matches);
        const bool at_start = stretch.data() == text.data();
        if (at_start && !matches.empty()) {
          result.keeps_start = KeepsStart(stretch, matches.front(), step.content);
        }
        const size_t max_bytes = MaxRewrittenBytes(work.text_bytes());
        if (status && matches.size() * step.content.size() > max_bytes) status = TooLarge();
        if (!status) return;
        size_t end = 0;
        for (const TextSpan& match : matches) {
          result.text += stretch.substr(end, match.begin - end);
          result.text += step.content;
          end = match.end;
        }
        result.text += stretch.substr(end);
      },
      [&](std::string_view byte) { result.text += byte; });
  if (!status) return tl::unexpected(std::move(status).error());
  return result;
}

Result<NormalizedText> Normalizer::Normalize(std::string_view text, RegexWork& work) const {
  NormalizedText result{std::string(text)};
  for (const NormalizerStep& step : steps_) {
    KVICK_ASSIGN_OR_RETURN(NormalizedText next, std::visit(Apply{result.text, work}, step));
    if (next.text.size() > MaxRewrittenBytes(work.text_bytes())) return TooLarge();
    next.keeps_start = next.keeps_start && result.keeps_start;
    result = std::move(next);
  }
  return result;
}

}  // namespace kvick
