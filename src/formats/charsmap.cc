#include "formats/charsmap.h"

#include <cstring>

#include "base/check.h"
#include "formats/unicode.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

// The fields of a unit of the double array.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::Parse(std::string_view bytes) {
  uint32_t trie_bytes = 0;
  const bool has_size = bytes.size() >= sizeof(trie_bytes);
  if (has_size) std::memcpy(&trie_bytes, bytes.data(), sizeof(trie_bytes));
  if (!has_size || trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 ||
      trie_bytes > bytes.size() - sizeof(trie_bytes)) {
    return Fail(ErrorCode::kCorrupt,
                "precompiled_charsmap: expected a trie of whole units within {} bytes, got one of "
                "{} bytes",
                bytes.size(), trie_bytes);
  }
  Charsmap map;
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data() + sizeof(trie_bytes), trie_bytes);
  map.replacements_ = bytes.substr(sizeof(trie_bytes) + trie_bytes);
  return map;
}

template <class Visit>
void Charsmap::ForEachEntry(std::string_view text, Visit visit) const {
  uint32_t place = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    place ^= byte;
    if (byte == 0 || place >= units_.size() || Label(units_[place]) != byte) return;
    const uint32_t unit = units_[place];
    place ^= Offset(unit);
    if (!HasLeaf(unit)) continue;
    if (place >= units_.size() || Value(units_[place]) >= replacements_.size()) return;
    const std::string_view rest = std::string_view(replacements_).substr(Value(units_[place]));
    if (!visit(Entry{i + 1, rest.substr(0, rest.find('\0'))})) return;
  }
}

std::optional<Charsmap::Entry> Charsmap::FindShortest(std::string_view text) const {
  std::optional<Entry> found;
  ForEachEntry(text, [&](const Entry& entry) {
    found = entry;
    return false;
  });
  return found;
}

std::optional<Charsmap::Entry> Charsmap::FindLongest(std::string_view text) const {
  std::optional<Entry> found;
  ForEachEntry(text, [&](const Entry& entry) {
    found = entry;
    return true;
  });
  return found;
}

void Charsmap::AppendReplaced(std::string_view grapheme, std::string& result) const {
  constexpr size_t kMaxGraphemeBytes = 5;
  if (grapheme.size() <= kMaxGraphemeBytes) {
    if (const auto entry = FindShortest(grapheme)) {
      result += entry->replacement;
      return;
    }
  }
  while (!grapheme.empty()) {
    const std::string_view character = grapheme.substr(0, CharacterBytes(grapheme));
    const auto entry = FindShortest(character);
    result += entry ? entry->replacement : character;
    grapheme.remove_prefix(character.size());
  }
}

std::optional<std::string> Charsmap::Replace(std::string_view text, size_t max_bytes) const {
  std::string result;
  ForEachUtf8Stretch(
      text,
      [&](std::string_view stretch) {
        while (!stretch.empty() && result.size() <= max_bytes) {
          const size_t num_bytes = GraphemeBytes(stretch);
          AppendReplaced(stretch.substr(0, num_bytes), result);
          stretch.remove_prefix(num_bytes);
        }
      },
      [&](std::string_view byte) { result += byte; });
  if (result.size() > max_bytes) return std::nullopt;
  return result;
}

}  // namespace kvick
