#include <bit>

#include "kvick/kv_cache.h"

namespace kvick {
namespace {

void AppendNumber(std::string& bytes, uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift));
}

void AppendText(std::string& bytes, std::string_view text) {
  AppendNumber(bytes, text.size());
  bytes += text;
}

}  // namespace

// A field is its type, its name and its value. All lengths are fixed or stand in front, so that the
// bytes can be read back in one way alone.
PrefixScope& PrefixScope::Text(std::string_view name, std::string_view value) {
  bytes_ += 't';
  AppendText(bytes_, name);
  AppendText(bytes_, value);
  return *this;
}

PrefixScope& PrefixScope::Integer(std::string_view name, int64_t value) {
  bytes_ += 'i';
  AppendText(bytes_, name);
  AppendNumber(bytes_, static_cast<uint64_t>(value));
  return *this;
}

PrefixScope& PrefixScope::Real(std::string_view name, double value) {
  bytes_ += 'r';
  AppendText(bytes_, name);
  AppendNumber(bytes_, std::bit_cast<uint64_t>(value));
  return *this;
}

}  // namespace kvick
