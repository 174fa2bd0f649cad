#ifndef KVICK_FORMATS_UTF8_H_
#define KVICK_FORMATS_UTF8_H_

#include <cstddef>
#include <string_view>

namespace kvick {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Kind {
  kCharacter,  ///< one well-formed character
  kInvalid,    ///< bytes that no continuation can make well-formed
  kTruncated,  ///< the beginning of a character, cut by the end of the bytes
};

struct Utf8Unit {
  Utf8Kind kind;
  size_t num_bytes;  ///< 1 to 4; of an invalid unit, the part that one U+FFFD replaces
};

// What the non-empty `bytes` begin with. Overlong forms, surrogates and numbers past U+10FFFF are
// invalid, and an invalid unit ends before the first byte that could not continue it.
// Source: The Unicode Standard, table 3-7 and "U+FFFD Substitution of Maximal Subparts".
Utf8Unit NextUtf8(std::string_view bytes);

// The bytes of the character that the non-empty `bytes` begin with, or 1 if they begin with none.
inline size_t CharacterBytes(std::string_view bytes) {
  const Utf8Unit unit = NextUtf8(bytes);
  return unit.kind == Utf8Kind::kCharacter ? unit.num_bytes : 1;
}

bool IsUtf8(std::string_view bytes);

// Calls `on_text` for each longest stretch of UTF-8 and `on_byte` for each byte that belongs to
// none.
template <class OnText, class OnByte>
void ForEachUtf8Stretch(std::string_view bytes, OnText on_text, OnByte on_byte) {
  size_t begin = 0, pos = 0;
  while (pos < bytes.size()) {
    const Utf8Unit unit = NextUtf8(bytes.substr(pos));
    if (unit.kind == Utf8Kind::kCharacter) {
      pos += unit.num_bytes;
      continue;
    }
    if (begin < pos) on_text(bytes.substr(begin, pos - begin));
    for (size_t i = 0; i < unit.num_bytes; ++i) on_byte(bytes.substr(pos + i, 1));
    begin = pos += unit.num_bytes;
  }
  if (begin < pos) on_text(bytes.substr(begin));
}

}  // namespace kvick

#endif  // KVICK_FORMATS_UTF8_H_
