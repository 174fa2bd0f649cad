#include "formats/utf8_stream.h"

#include <utility>

#include "formats/utf8.h"

namespace kvick {

std::string Utf8Stream::Push(std::string_view bytes) {
  pending_.append(bytes);
  std::string_view rest = pending_;
  std::string text;
  while (!rest.empty()) {
    const Utf8Unit unit = NextUtf8(rest);
    if (unit.kind == Utf8Kind::kTruncated) break;
    const bool replace = unit.kind == Utf8Kind::kInvalid && invalid_ == InvalidUtf8::kReplace;
    text.append(replace ? kReplacementCharacter : rest.substr(0, unit.num_bytes));
    rest.remove_prefix(unit.num_bytes);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string Utf8Stream::Finish() {
  std::string rest = std::exchange(pending_, {});
  if (!rest.empty() && invalid_ == InvalidUtf8::kReplace) rest = kReplacementCharacter;
  return rest;
}

}  // namespace kvick
