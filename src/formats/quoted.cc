#include "formats/quoted.h"

#include <fmt/format.h>

#include <iterator>

namespace kvick {

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxBytes)) {
    const bool is_printable = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    if (is_printable) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kMaxBytes ? "...\"" : "\"";
  return out;
}

}  // namespace kvick
