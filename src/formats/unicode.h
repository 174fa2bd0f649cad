#ifndef KVICK_FORMATS_UNICODE_H_
#define KVICK_FORMATS_UNICODE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kvick {

// What tokenizers ask of a character, as the crates behind Hugging Face's tokenizers answer.
bool IsWhiteSpace(char32_t character);     ///< the property White_Space
bool IsNumeric(char32_t character);        ///< Nd, Nl, No
bool IsPunctuation(char32_t character);    ///< P*, and the symbols of ASCII
bool IsCombiningMark(char32_t character);  ///< M*
bool IsWordCharacter(char32_t character);  ///< \w of UTS #18: letters, marks, digits, joiners, ...

// The character that `text` begins with, which must be well-formed UTF-8.
char32_t FirstCharacter(std::string_view text);

// The character that `text` ends with; empty where its last bytes are none.
std::string_view LastCharacter(std::string_view text);

// The bytes of the grapheme cluster that `text` begins with, which must be UTF-8 and not empty.
size_t GraphemeBytes(std::string_view text);

void AppendUtf8(char32_t character, std::string& text);

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// The text in a normal form; bytes that are no UTF-8 stay as they are. Cost  O(n log n).
std::string NormalizeUnicode(std::string_view text, UnicodeForm form);

// The text in lower case, each character for itself: a final sigma becomes a sigma as any other.
std::string Lowercase(std::string_view text);

}  // namespace kvick

#endif  // KVICK_FORMATS_UNICODE_H_
