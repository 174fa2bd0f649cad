#include "formats/quoted.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

#include "formats/utf8.h"

namespace kvick {
namespace {

// The number of a well-formed character.
uint32_t CodePoint(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  if (lead < 0x80) return lead;
  uint32_t code = lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code;
}

bool IsShown(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool is_line_end = code == 0x2028 || code == 0x2029;
  const bool is_direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                            (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2066 && code <= 0x2069);
  return !is_control && !is_line_end && !is_direction;
}

// The bytes that `text` begins with, and whether they can be shown.
struct Unit {
  std::string_view bytes;
  bool is_shown;
};

Unit NextUnit(std::string_view text) {
  const Utf8Unit next = NextUtf8(text);
  const std::string_view bytes = text.substr(0, next.num_bytes);
  return {bytes, next.kind == Utf8Kind::kCharacter && IsShown(CodePoint(bytes))};
}

}  // namespace

std::string Quoted(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  size_t num_bytes = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [bytes, is_shown] = NextUnit(rest);
    rest.remove_prefix(bytes.size());
    num_bytes += bytes.size();
    if (num_bytes > max_bytes) return out + "...\"";
    if (bytes == "\"" || bytes == "\\") {
      out.append("\\").append(bytes);
    } else if (is_shown) {
      out += bytes;
    } else {
      for (const char c : bytes) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
  }
  return out + "\"";
}

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const auto [bytes, is_shown] = NextUnit(text);
    if (!is_shown) return false;
    text.remove_prefix(bytes.size());
  }
  return true;
}

}  // namespace kvick
