#include "formats/special_tokens.h"

#include <algorithm>
#include <compare>
#include <tuple>

#include "base/check.h"

namespace kvick {

Result<SpecialTokenMatcher> SpecialTokenMatcher::Create(const Vocabulary& vocabulary) {
  constexpr size_t kMaxBytes = 1024;
  SpecialTokenMatcher matcher;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool user_defined = type == TokenType::kUserDefined;
    if (!user_defined && type != TokenType::kControl && type != TokenType::kUnknown) continue;
    const std::string_view text = vocabulary.bytes(id);
    if (text.empty()) continue;
    if (text.size() > kMaxBytes) {
      return Fail(ErrorCode::kUnsupported,
                  "token {} is a special token of {} bytes, at most {} is possible", id,
                  text.size(), kMaxBytes);
    }
    matcher.entries_.push_back({text, id, user_defined});
    matcher.first_bytes_.set(static_cast<uint8_t>(text[0]));
  }
  std::ranges::sort(matcher.entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.text, a.id) < std::tie(b.text, b.id);
  });
  return matcher;
}

std::optional<SpecialTokenMatcher::Match> SpecialTokenMatcher::FindNext(std::string_view text,
                                                                        size_t from,
                                                                        SpecialTokens which) const {
  for (size_t pos = from; pos < text.size(); ++pos) {
    if (!first_bytes_[static_cast<uint8_t>(text[pos])]) continue;
    if (const Entry* entry = LongestAtStart(text.substr(pos), which)) {
      return Match{pos, pos + entry->text.size(), entry->id};
    }
  }
  return std::nullopt;
}

// Narrows the sorted entries, byte by byte, to those that begin as `text` does.
const SpecialTokenMatcher::Entry* SpecialTokenMatcher::LongestAtStart(std::string_view text,
                                                                      SpecialTokens which) const {
  const Entry* longest = nullptr;
  auto begin = entries_.begin(), end = entries_.end();
  for (size_t depth = 0; begin != end; ++depth) {
    while (begin != end && begin->text.size() == depth) {  // a whole entry: longer ones follow
      const bool wanted = which == SpecialTokens::kAll || begin->user_defined;
      if (wanted && (!longest || longest->text.size() < depth)) longest = &*begin;
      ++begin;
    }
    if (depth == text.size()) break;
    const auto compare = [depth, byte = static_cast<uint8_t>(text[depth])](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]) <=> byte;
    };
    begin = std::partition_point(begin, end, [&](const Entry& e) { return compare(e) < 0; });
    end = std::partition_point(begin, end, [&](const Entry& e) { return compare(e) == 0; });
  }
  return longest;
}

}  // namespace kvick
