#include "formats/pretokenizer.h"

#include <utility>

#include "base/check.h"
#include "formats/normalizer.h"
#include "formats/piece_spelling.h"
#include "formats/split_pieces.h"
#include "formats/unicode.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

using Pieces = PreTokenizer::Pieces;

bool IsIn(CharacterClass character_class, char32_t character) {
  switch (character_class) {
    case CharacterClass::kNumeric:
      return IsNumeric(character);
    case CharacterClass::kPunctuation:
      return IsPunctuation(character);
    case CharacterClass::kWhiteSpace:
      return IsWhiteSpace(character);
  }
  return false;
}

void FindClass(CharacterClass character_class, std::string_view text,
               std::vector<TextSpan>& matches) {
  for (size_t pos = 0; pos < text.size();) {
    const size_t num_bytes = NextUtf8(text.substr(pos)).num_bytes;
    if (IsIn(character_class, FirstCharacter(text.substr(pos, num_bytes)))) {
      matches.push_back({pos, pos + num_bytes});
    }
    pos += num_bytes;
  }
}

// Splits pieces by what `find(text, matches)` finds in each stretch of UTF-8.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, bool invert) : behavior_(behavior), invert_(invert) {}

  template <class Find>
  Status Split(Pieces& pieces, Find find) {
    const bool is_utf8 = IsUtf8(pieces.text);
    std::vector<TextSpan> shorter;
    shorter.reserve(pieces.spans.size());
    Status status;
    for (const TextSpan& span : pieces.spans) {
      const auto split_stretch = [&](std::string_view stretch) {
        if (status) status = SplitStretch(pieces.text, stretch, find, shorter);
      };
      const std::string_view piece =
          std::string_view(pieces.text).substr(span.begin, span.end - span.begin);
      if (is_utf8) {
        split_stretch(piece);
      } else {
        ForEachUtf8Stretch(piece, split_stretch, [&](std::string_view byte) {
          const auto begin = static_cast<size_t>(byte.data() - pieces.text.data());
          shorter.push_back({begin, begin + 1});
        });
      }
      KVICK_RETURN_IF_ERROR(std::move(status));
      status = {};
    }
    pieces.spans = std::move(shorter);
    if (pieces.spans.empty() || pieces.spans.front().begin > 0) pieces.at_start = false;
    return {};
  }

 private:
  template <class Find>
  Status SplitStretch(const std::string& text, std::string_view stretch, Find find,
                      std::vector<TextSpan>& shorter) {
    matches_.clear();
    parts_.clear();
    KVICK_RETURN_IF_ERROR(find(stretch, matches_));
    const auto offset = static_cast<size_t>(stretch.data() - text.data());
    for (TextSpan& match : matches_) match = {match.begin + offset, match.end + offset};
    AppendParts({offset, offset + stretch.size()}, matches_, parts_);
    if (invert_) {
      for (SplitPart& part : parts_) part.is_match = !part.is_match;
    }
    AppendPieces(parts_, behavior_, shorter);
    return {};
  }

  SplitBehavior behavior_;
  bool invert_;
  std::vector<TextSpan> matches_;
  std::vector<SplitPart> parts_;
};

// Builds a new text of the same pieces: `write(piece, is_first, text)` appends one.
template <class Write>
void Rewrite(Pieces& pieces, Write write) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 4);
  bool is_first = true;
  for (TextSpan& span : pieces.spans) {
    const size_t begin = text.size();
    write(std::string_view(pieces.text).substr(span.begin, span.end - span.begin), is_first, text);
    span = {begin, text.size()};
    is_first = false;
  }
  pieces.text = std::move(text);
}

struct Apply {
  Pieces& pieces;
  RegexWork& work;

  Status operator()(const SplitStep& step) const {
    return Splitter(step.behavior, step.invert)
        .Split(pieces, [&](std::string_view text, std::vector<TextSpan>& matches) -> Status {
          if (const auto* pattern = std::get_if<TextPattern>(&step.pattern)) {
            return pattern->FindAll(text, work, matches);
          }
          FindClass(std::get<CharacterClass>(step.pattern), text, matches);
          return {};
        });
  }

  Status operator()(WhitespaceStep) const;
  Status operator()(const ByteLevelStep& step) const;
  Status operator()(const MetaspaceStep& step) const;
};

Status Apply::operator()(WhitespaceStep) const {
  enum class Kind { kSpace, kWord, kOther };
  const auto kind_of = [](char32_t character) {
    if (IsWordCharacter(character)) return Kind::kWord;
    return IsWhiteSpace(character) ? Kind::kSpace : Kind::kOther;
  };
  const auto find_runs = [&](std::string_view text, std::vector<TextSpan>& matches) -> Status {
    Kind previous = Kind::kSpace;
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = pos + NextUtf8(text.substr(pos)).num_bytes;
      const Kind kind = kind_of(FirstCharacter(text.substr(pos, end - pos)));
      if (kind != Kind::kSpace) {
        if (kind == previous) {
          matches.back().end = end;
        } else {
          matches.push_back({pos, end});
        }
      }
      previous = kind;
      pos = end;
    }
    return {};
  };
  return Splitter(SplitBehavior::kRemoved, true).Split(pieces, find_runs);
}

Status Apply::operator()(const ByteLevelStep& step) const {
  if (step.add_prefix_space) {
    Rewrite(pieces, [](std::string_view piece, bool, std::string& text) {
      if (!piece.starts_with(' ')) text += ' ';
      text += piece;
    });
  }
  if (step.split) {
    KVICK_RETURN_IF_ERROR(
        Splitter(SplitBehavior::kIsolated, false)
            .Split(pieces, [&](std::string_view text, std::vector<TextSpan>& matches) {
              return step.split->FindAll(text, work, matches);
            }));
  }
  Rewrite(pieces, [](std::string_view piece, bool, std::string& text) { SpellBytes(piece, text); });
  return {};
}

Status Apply::operator()(const MetaspaceStep& step) const {
  Rewrite(pieces, [&](std::string_view piece, bool is_first, std::string& text) {
    const bool has_marker = piece.starts_with(' ') || piece.starts_with(step.marker);
    const bool prepends = step.scheme == PrependScheme::kAlways ||
                          (step.scheme == PrependScheme::kFirst && is_first && pieces.at_start);
    if (prepends && !has_marker) text += step.marker;
    for (const char c : piece) {
      if (c == ' ') {
        text += step.marker;
      } else {
        text += c;
      }
    }
  });
  if (!step.split) return {};
  return Splitter(SplitBehavior::kMergedWithNext, false)
      .Split(pieces, [&](std::string_view text, std::vector<TextSpan>& matches) -> Status {
        for (size_t begin = text.find(step.marker); begin != std::string_view::npos;) {
          matches.push_back({begin, begin + step.marker.size()});
          begin = text.find(step.marker, begin + step.marker.size());
        }
        return {};
      });
}

}  // namespace

Status PreTokenizer::Split(Pieces& pieces, RegexWork& work) const {
  for (const PreTokenizerStep& step : steps_) {
    KVICK_RETURN_IF_ERROR(std::visit(Apply{pieces, work}, step));
    if (pieces.text.size() > 2 * MaxRewrittenBytes(work.text_bytes())) {
      return Fail(ErrorCode::kExhausted, "the tokenizer's pre-tokenizer makes the text too large");
    }
  }
  return {};
}

}  // namespace kvick
