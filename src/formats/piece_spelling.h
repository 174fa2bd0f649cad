#ifndef KVICK_FORMATS_PIECE_SPELLING_H_
#define KVICK_FORMATS_PIECE_SPELLING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvick {

inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";  // U+2581, a low block

// Byte-level pieces spell each byte by one character: bytes that print as Latin-1 (21 to 7E, A1 to
// AC, AE to FF) by the character of the same number; the others, in ascending order, by U+0100,
// U+0101, ...: a space is U+0120. Source: bytes_to_unicode in GPT-2's encoder.py

// Appends the spelling of `bytes`.
void SpellBytes(std::string_view bytes, std::string& spelled);

// The bytes that `piece` spells, or nullopt where it has a character that spells none.
std::optional<std::string> SpelledBytes(std::string_view piece);

// 0x0A for "<0x0A>"; nullopt for anything that is not exactly two hexadecimal digits so wrapped.
std::optional<uint8_t> ParseBytePiece(std::string_view piece);

}  // namespace kvick

#endif  // KVICK_FORMATS_PIECE_SPELLING_H_
