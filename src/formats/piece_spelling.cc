#include "formats/piece_spelling.h"

#include <array>
#include <cstdint>

namespace kvick {
namespace {

constexpr int kNumSpellings = 0x144;  // 256 bytes, 68 of them shifted past U+00FF

// The byte that each character below U+0144 spells, or -1.
constexpr std::array<int16_t, kNumSpellings> MakeByteOfCharacter() {
  std::array<int16_t, kNumSpellings> table{};
  for (int16_t& entry : table) entry = -1;
  int shifted = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[printable ? byte : shifted++] = static_cast<int16_t>(byte);
  }
  return table;
}
constexpr std::array<int16_t, kNumSpellings> kByteOfCharacter = MakeByteOfCharacter();

}  // namespace

std::string SpacesOfMarkers(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t marker = text.find(kSpaceMarker);
    result.append(text.substr(0, marker));
    if (marker == std::string_view::npos) return result;
    result += ' ';
    text.remove_prefix(marker + kSpaceMarker.size());
  }
}

std::optional<std::string> BytesOfByteLevel(std::string_view piece) {
  std::string bytes;
  for (size_t i = 0; i < piece.size(); ++i) {
    int character = static_cast<uint8_t>(piece[i]);
    if (character >= 0x80) {  // all spellings are characters of at most two bytes
      if (character < 0xC2 || character > 0xC5 || i + 1 == piece.size()) return std::nullopt;
      const int continuation = static_cast<uint8_t>(piece[++i]);
      if ((continuation & 0xC0) != 0x80) return std::nullopt;
      character = (character & 0x1F) << 6 | (continuation & 0x3F);
    }
    if (character >= kNumSpellings || kByteOfCharacter[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfCharacter[character]);
  }
  return bytes;
}

}  // namespace kvick
