#include "formats/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

utf8proc_category_t Category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool IsIn(char32_t character, char32_t first, char32_t last) {
  return first <= character && character <= last;
}

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

bool IsComposed(UnicodeForm form) {
  return form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
}

int NormalizationOptions(UnicodeForm form) {
  const bool compatibility = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  return UTF8PROC_STABLE | (IsComposed(form) ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
         (compatibility ? UTF8PROC_COMPAT : 0);
}

int CombiningClass(utf8proc_int32_t character) {
  return static_cast<int>(utf8proc_get_property(character)->combining_class);
}

// Sorts each run of marks by combining class. utf8proc's own sort is quadratic.
void SortMarks(std::vector<utf8proc_int32_t>& characters) {
  for (size_t begin = 0; begin < characters.size();) {
    if (CombiningClass(characters[begin]) == 0) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < characters.size() && CombiningClass(characters[end]) != 0) ++end;
    std::stable_sort(characters.begin() + static_cast<ptrdiff_t>(begin),
                     characters.begin() + static_cast<ptrdiff_t>(end),
                     [](auto a, auto b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end;
  }
}

std::vector<utf8proc_int32_t> Decompose(std::string_view text, int options) {
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    constexpr size_t kMaxDecomposed = 32;  // 18 characters in Unicode 15
    utf8proc_int32_t decomposed[kMaxDecomposed];
    int last_boundclass = 0;
    const utf8proc_ssize_t num_decomposed = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(FirstCharacter(text)), decomposed, kMaxDecomposed,
        static_cast<utf8proc_option_t>(options), &last_boundclass);
    KVICK_CHECK(num_decomposed >= 0 && std::cmp_less_equal(num_decomposed, kMaxDecomposed));
    characters.insert(characters.end(), decomposed, decomposed + num_decomposed);
    text.remove_prefix(NextUtf8(text).num_bytes);
  }
  return characters;
}

void AppendNormalized(std::string_view text, UnicodeForm form, std::string& result) {
  const int options = NormalizationOptions(form);
  std::vector<utf8proc_int32_t> characters = Decompose(text, options);
  SortMarks(characters);
  if (IsComposed(form) && !characters.empty()) {
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(
        characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
        static_cast<utf8proc_option_t>(options));
    KVICK_CHECK(length >= 0);
    characters.resize(static_cast<size_t>(length));
  }
  for (utf8proc_int32_t character : characters) {
    AppendUtf8(static_cast<char32_t>(character), result);
  }
}

}  // namespace

bool IsWhiteSpace(char32_t character) {
  return character == ' ' || IsIn(character, 0x09, 0x0D) || character == 0x85 ||
         character == 0xA0 || character == 0x1680 || IsIn(character, 0x2000, 0x200A) ||
         character == 0x2028 || character == 0x2029 || character == 0x202F || character == 0x205F ||
         character == 0x3000;
}

bool IsNumeric(char32_t character) {
  const utf8proc_category_t category = Category(character);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool IsPunctuation(char32_t character) {
  if (character < 0x80) {
    return IsIn(character, 0x21, 0x2F) || IsIn(character, 0x3A, 0x40) ||
           IsIn(character, 0x5B, 0x60) || IsIn(character, 0x7B, 0x7E);
  }
  const utf8proc_category_t category = Category(character);
  return UTF8PROC_CATEGORY_PC <= category && category <= UTF8PROC_CATEGORY_PO;
}

bool IsCombiningMark(char32_t character) {
  const utf8proc_category_t category = Category(character);
  return UTF8PROC_CATEGORY_MN <= category && category <= UTF8PROC_CATEGORY_ME;
}

bool IsWordCharacter(char32_t character) {
  const utf8proc_category_t category = Category(character);
  const bool is_joiner = IsIn(character, 0x200C, 0x200D);
  // Letters in circles and squares: symbols that are Alphabetic.
  const bool is_enclosed_letter =
      IsIn(character, 0x24B6, 0x24E9) || IsIn(character, 0x1F130, 0x1F149) ||
      IsIn(character, 0x1F150, 0x1F169) || IsIn(character, 0x1F170, 0x1F189);
  return (UTF8PROC_CATEGORY_LU <= category && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || is_joiner || is_enclosed_letter;
}

char32_t FirstCharacter(std::string_view text) {
  utf8proc_int32_t character = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &character);
  return static_cast<char32_t>(character);
}

size_t GraphemeBytes(std::string_view text) {
  utf8proc_int32_t state = 0;
  auto before = static_cast<utf8proc_int32_t>(FirstCharacter(text));
  size_t num_bytes = NextUtf8(text).num_bytes;
  while (num_bytes < text.size()) {
    const std::string_view rest = text.substr(num_bytes);
    const auto character = static_cast<utf8proc_int32_t>(FirstCharacter(rest));
    if (utf8proc_grapheme_break_stateful(before, character, &state)) break;
    before = character;
    num_bytes += NextUtf8(rest).num_bytes;
  }
  return num_bytes;
}

std::string_view LastCharacter(std::string_view text) {
  for (size_t num_bytes = 1; num_bytes <= std::min<size_t>(4, text.size()); ++num_bytes) {
    const std::string_view end = text.substr(text.size() - num_bytes);
    const Utf8Unit unit = NextUtf8(end);
    if (unit.kind == Utf8Kind::kCharacter && unit.num_bytes == num_bytes) return end;
  }
  return {};
}

void AppendUtf8(char32_t character, std::string& text) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t num_bytes =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(num_bytes));
}

std::string NormalizeUnicode(std::string_view text, UnicodeForm form) {
  if (IsAscii(text)) return std::string(text);
  std::string result;
  ForEachUtf8Stretch(
      text, [&](std::string_view stretch) { AppendNormalized(stretch, form, result); },
      [&](std::string_view byte) { result += byte; });
  return result;
}

std::string Lowercase(std::string_view text) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = NextUtf8(text);
    if (unit.kind != Utf8Kind::kCharacter) {
      result += text.substr(0, unit.num_bytes);
    } else if (const char32_t character = FirstCharacter(text); character == kCapitalIWithDot) {
      result += "i\xCC\x87";
    } else {
      AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))),
                 result);
    }
    text.remove_prefix(unit.num_bytes);
  }
  return result;
}

}  // namespace kvick
