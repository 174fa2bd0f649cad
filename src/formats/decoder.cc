#include "formats/decoder.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "formats/piece_spelling.h"

namespace kvick {
namespace {

std::string_view StripToken(std::string_view token, const StripTokenStep& step) {
  for (size_t i = 0; i < step.start && token.starts_with(step.content); ++i) {
    token.remove_prefix(step.content.size());
  }
  for (size_t i = 0; i < step.stop && token.ends_with(step.content); ++i) {
    token.remove_suffix(step.content.size());
  }
  return token;
}

std::string Unmark(std::string_view token, const UnmarkStep& step, bool is_first) {
  const std::string_view space = is_first && step.drops_first ? "" : " ";
  std::string result;
  while (true) {
    const size_t marker = token.find(step.marker);
    result += token.substr(0, marker);
    if (marker == std::string_view::npos) return result;
    result += space;
    token.remove_prefix(marker + step.marker.size());
  }
}

// The bytes of all tokens are stored, and must be in proportion to the file.
size_t MaxTokenBytes(size_t piece_bytes) { return 16 * piece_bytes + 256; }

struct Apply {
  std::string token;
  bool is_first;
  RegexWork& work;

  Result<std::string> operator()(const ReplaceStep& step) const {
    KVICK_ASSIGN_OR_RETURN(NormalizedText text, ReplaceMatches(token, step, work));
    return std::move(text.text);
  }
  Result<std::string> operator()(ByteFallbackStep) const {
    const std::optional<uint8_t> byte = ParseBytePiece(token);
    return byte ? std::string(1, static_cast<char>(*byte)) : token;
  }
  Result<std::string> operator()(const StripTokenStep& step) const {
    return std::string(StripToken(token, step));
  }
  Result<std::string> operator()(SpelledBytesStep) const {
    return SpelledBytes(token).value_or(token);
  }
  Result<std::string> operator()(const UnmarkStep& step) const {
    return Unmark(token, step, is_first);
  }
};

}  // namespace

Result<std::string> Decoder::TokenBytes(std::string_view piece, bool is_first,
                                        RegexWork& work) const {
  std::string token(piece);
  for (const DecoderStep& step : steps) {
    KVICK_ASSIGN_OR_RETURN(token, std::visit(Apply{std::move(token), is_first, work}, step));
    if (token.size() > MaxTokenBytes(piece.size())) {
      return Fail(ErrorCode::kExhausted,
                  "the tokenizer's decoder: expected at most {} bytes of a token of {}, got {}",
                  MaxTokenBytes(piece.size()), piece.size(), token.size());
    }
  }
  return token;
}

bool Decoder::HasFirstToken() const {
  return std::ranges::any_of(steps, [](const DecoderStep& step) {
    const auto* unmark = std::get_if<UnmarkStep>(&step);
    return unmark != nullptr && unmark->drops_first;
  });
}

}  // namespace kvick
