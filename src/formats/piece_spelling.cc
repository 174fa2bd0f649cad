#include "formats/piece_spelling.h"

#include <array>
#include <charconv>

namespace kvick {
namespace {

constexpr int kNumSpellings = 0x144;  // 256 bytes, 68 of them shifted past U+00FF

struct Spelling {
  std::array<int16_t, kNumSpellings> byte_of{};  // the byte that a character spells, or -1
  std::array<int16_t, 256> character_of{};
};

constexpr Spelling MakeSpelling() {
  Spelling spelling;
  for (int16_t& byte : spelling.byte_of) byte = -1;
  int shifted = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int character = printable ? byte : shifted++;
    spelling.byte_of[character] = static_cast<int16_t>(byte);
    spelling.character_of[byte] = static_cast<int16_t>(character);
  }
  return spelling;
}
constexpr Spelling kSpelling = MakeSpelling();

}  // namespace

void SpellBytes(std::string_view bytes, std::string& spelled) {
  for (const char c : bytes) {
    const int character = kSpelling.character_of[static_cast<uint8_t>(c)];
    if (character < 0x80) {
      spelled += static_cast<char>(character);
    } else {
      spelled += static_cast<char>(0xC0 | character >> 6);
      spelled += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
}

std::optional<std::string> SpelledBytes(std::string_view piece) {
  std::string bytes;
  for (size_t i = 0; i < piece.size(); ++i) {
    int character = static_cast<uint8_t>(piece[i]);
    if (character >= 0x80) {  // all spellings are characters of at most two bytes
      if (character < 0xC2 || character > 0xC5 || i + 1 == piece.size()) return std::nullopt;
      const int continuation = static_cast<uint8_t>(piece[++i]);
      if ((continuation & 0xC0) != 0x80) return std::nullopt;
      character = (character & 0x1F) << 6 | (continuation & 0x3F);
    }
    if (character >= kNumSpellings || kSpelling.byte_of[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kSpelling.byte_of[character]);
  }
  return bytes;
}

std::optional<uint8_t> ParseBytePiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const char* end = piece.data() + 5;
  const auto [parsed, error] = std::from_chars(piece.data() + 3, end, byte, 16);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return byte;
}

}  // namespace kvick
