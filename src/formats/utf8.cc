#include "formats/utf8.h"

#include <cstdint>

namespace kvick {
namespace {

struct LeadByte {
  size_t num_bytes;                // of the whole character; 0: no character starts so
  uint8_t second_min, second_max;  // the range of the second byte; later ones are 80 to BF
};

LeadByte ClassifyLead(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead < 0xF0)
    return {3, uint8_t(lead == 0xE0 ? 0xA0 : 0x80), uint8_t(lead == 0xED ? 0x9F : 0xBF)};
  if (lead < 0xF5)
    return {4, uint8_t(lead == 0xF0 ? 0x90 : 0x80), uint8_t(lead == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit NextUtf8(std::string_view bytes) {
  const LeadByte lead = ClassifyLead(static_cast<uint8_t>(bytes[0]));
  if (lead.num_bytes == 0) return {Utf8Kind::kInvalid, 1};
  for (size_t i = 1; i < lead.num_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kTruncated, i};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kCharacter, lead.num_bytes};
}

bool IsUtf8(std::string_view bytes) {
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Unit unit = NextUtf8(bytes.substr(pos));
    if (unit.kind != Utf8Kind::kCharacter) return false;
    pos += unit.num_bytes;
  }
  return true;
}

}  // namespace kvick
