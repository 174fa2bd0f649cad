#ifndef KVICK_FORMATS_PIECE_SPELLING_H_
#define KVICK_FORMATS_PIECE_SPELLING_H_

#include <optional>
#include <string>
#include <string_view>

namespace kvick {

inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";  // U+2581, a low block

// The text with each space marker turned into a space.
std::string SpacesOfMarkers(std::string_view text);

// The bytes that a byte-level piece spells, or nullopt where it has a character that spells none.
//
// Bytes that print as Latin-1 (21 to 7E, A1 to AC, AE to FF) are spelled by the character of the
// same number; the others, in ascending order, by U+0100, U+0101, ...: a space is U+0120. Source:
// bytes_to_unicode in GPT-2's encoder.py
std::optional<std::string> BytesOfByteLevel(std::string_view piece);

}  // namespace kvick

#endif  // KVICK_FORMATS_PIECE_SPELLING_H_
