#include "formats/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "formats/unicode.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

constexpr int32_t kNone = -1;

bool EndsWithWord(std::string_view text) {
  const std::string_view last = LastCharacter(text);
  return !last.empty() && IsWordCharacter(FirstCharacter(last));
}

bool BeginsWithWord(std::string_view text) {
  return !text.empty() && NextUtf8(text).kind == Utf8Kind::kCharacter &&
         IsWordCharacter(FirstCharacter(text));
}

bool MayStand(const AddedToken& token, std::string_view before, std::string_view after) {
  return !token.single_word || (!EndsWithWord(before) && !BeginsWithWord(after));
}

// The bytes of white space at the end of `text`.
size_t TrailingWhiteSpace(std::string_view text) {
  const size_t num_bytes = text.size();
  while (true) {
    const std::string_view last = LastCharacter(text);
    if (last.empty() || !IsWhiteSpace(FirstCharacter(last))) return num_bytes - text.size();
    text.remove_suffix(last.size());
  }
}

size_t LeadingWhiteSpace(std::string_view text) {
  const size_t num_bytes = text.size();
  while (!text.empty()) {
    const Utf8Unit unit = NextUtf8(text);
    if (unit.kind != Utf8Kind::kCharacter || !IsWhiteSpace(FirstCharacter(text))) break;
    text.remove_prefix(unit.num_bytes);
  }
  return num_bytes - text.size();
}

// For each of the sorted tokens the longest other one that it begins with: its index, or kNone.
std::vector<int32_t> LongestPrefixes(const std::vector<AddedToken>& tokens) {
  std::vector<int32_t> prefixes;
  prefixes.reserve(tokens.size());
  for (const AddedToken& token : tokens) {
    auto prefix = static_cast<int32_t>(prefixes.size()) - 1;
    while (prefix != kNone && !token.content.starts_with(tokens[prefix].content)) {
      prefix = prefixes[prefix];
    }
    prefixes.push_back(prefix);
  }
  return prefixes;
}

size_t NumSharedBytes(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Status CheckAddedTokenSize(int32_t id, size_t num_bytes) {
  if (num_bytes <= kMaxAddedTokenBytes) return {};
  return Fail(ErrorCode::kUnsupported, "added token {}: expected at most {} bytes, got {}", id,
              kMaxAddedTokenBytes, num_bytes);
}

Result<AddedTokenFinder> AddedTokenFinder::Create(std::vector<AddedToken> tokens) {
  std::erase_if(tokens, [](const AddedToken& token) { return token.content.empty(); });
  for (const AddedToken& token : tokens) {
    KVICK_RETURN_IF_ERROR(CheckAddedTokenSize(token.id, token.content.size()));
  }
  AddedTokenFinder finder;
  std::ranges::stable_sort(tokens, {}, &AddedToken::content);
  const auto repeated =
      std::unique(tokens.begin(), tokens.end(),
                  [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; });
  tokens.erase(repeated, tokens.end());
  for (const AddedToken& token : tokens) {
    finder.first_bytes_.set(static_cast<uint8_t>(token.content[0]));
  }
  finder.prefixes_ = LongestPrefixes(tokens);
  finder.tokens_ = std::move(tokens);
  return finder;
}

std::vector<AddedTokenFinder::Part> AddedTokenFinder::Find(std::string_view text,
                                                           SpecialTokens specials) const {
  std::vector<Part> parts;
  size_t end_of_last = 0;
  size_t end_of_space = 0;  // of the last white space that a token took: it is not scanned twice
  for (size_t pos = 0; pos < text.size();) {
    const bool may_begin = first_bytes_[static_cast<uint8_t>(text[pos])];
    const AddedToken* token = may_begin ? LongestAtStart(text.substr(pos), specials) : nullptr;
    if (token == nullptr) {
      ++pos;
      continue;
    }
    size_t begin = pos, end = pos + token->content.size();
    pos = end;
    if (!MayStand(*token, text.substr(0, begin), text.substr(end))) continue;
    if (token->lstrip) {
      const size_t first = std::min(begin, end_of_last);
      begin = std::max(begin - TrailingWhiteSpace(text.substr(first, begin - first)), end_of_last);
    }
    if (token->rstrip) {
      if (end >= end_of_space) end_of_space = end + LeadingWhiteSpace(text.substr(end));
      end = end_of_space;
    }
    if (end_of_last < begin) parts.push_back({end_of_last, begin, kNoToken});
    if (begin < end) parts.push_back({begin, end, token->id});
    end_of_last = end;
  }
  if (end_of_last < text.size()) parts.push_back({end_of_last, text.size(), kNoToken});
  return parts;
}

// Of the tokens up to `text` in their order, the last shares the most bytes with it. Each token
// that `text` begins with is that one, or one that it begins with.
const AddedToken* AddedTokenFinder::LongestAtStart(std::string_view text,
                                                   SpecialTokens specials) const {
  const auto above = std::ranges::upper_bound(
      tokens_, text, {}, [](const AddedToken& token) { return std::string_view(token.content); });
  auto at = static_cast<int32_t>(above - tokens_.begin()) - 1;
  if (at == kNone) return nullptr;
  const size_t num_shared = NumSharedBytes(tokens_[at].content, text);
  for (; at != kNone; at = prefixes_[at]) {
    const AddedToken& token = tokens_[at];
    const bool counts = specials == SpecialTokens::kAsTokens || !token.special;
    if (counts && token.content.size() <= num_shared) return &token;
  }
  return nullptr;
}

}  // namespace kvick
