#ifndef KVICK_FORMATS_PROTOBUF_FIELD_H_
#define KVICK_FORMATS_PROTOBUF_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "formats/byte_reader.h"
#include "kvick/status.h"

namespace kvick {

// A field of a protobuf message, where it lies.
// Source  https://protobuf.dev/programming-guides/encoding/
struct ProtobufField {
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t number = 0;
  Type type = Type::kVarint;
  uint64_t value = 0;                // of a number, its bits
  std::span<const std::byte> bytes;  // of kBytes: text, or a message inside this one

  // The value as what the schema says. `name` names the field in messages.
  // Errors  corrupt: the field has another type on the wire
  Result<std::span<const std::byte>> Bytes(std::string_view name) const;
  Result<std::string_view> String(std::string_view name) const;
  Result<int64_t> Int(std::string_view name) const;
  Result<float> Float(std::string_view name) const;
};

// Errors  corrupt: the bytes end inside the field, a number of more than 64 bits, a group or an
//         unknown type on the wire
Result<ProtobufField> ReadProtobufField(ByteReader& reader);

// Calls `visit(field)`, which gives a Status, for each field of a message in order; ends with the
// first error. `source` names the message in errors.
template <class Visit>
Status ForEachProtobufField(std::span<const std::byte> message, std::string_view source,
                            Visit visit) {
  ByteReader reader(message, source);
  while (reader.num_left() > 0) {
    KVICK_ASSIGN_OR_RETURN(const ProtobufField field, ReadProtobufField(reader));
    KVICK_RETURN_IF_ERROR(visit(field));
  }
  return {};
}

}  // namespace kvick

#endif  // KVICK_FORMATS_PROTOBUF_FIELD_H_
