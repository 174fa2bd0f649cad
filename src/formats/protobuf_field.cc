#include "formats/protobuf_field.h"

#include <bit>

namespace kvick {
namespace {

constexpr std::string_view kWhat = "a field";

Result<uint64_t> ReadVarint(ByteReader& reader) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    KVICK_ASSIGN_OR_RETURN(const auto byte, reader.Read<uint8_t>(kWhat));
    const uint64_t bits = byte & 0x7Fu;
    if (shift == 63 && bits > 1) break;
    value |= bits << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return Fail(ErrorCode::kCorrupt, "{}: the number before offset {}: expected at most 64 bits",
              reader.source(), reader.position());
}

tl::unexpected<Error> WrongType(std::string_view name, std::string_view expected,
                                ProtobufField::Type type) {
  return Fail(ErrorCode::kCorrupt, "{}: expected {}, got wire type {}", name, expected,
              static_cast<int>(type));
}

}  // namespace

Result<ProtobufField> ReadProtobufField(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const uint64_t tag, ReadVarint(reader));
  ProtobufField field;
  field.number = tag >> 3;
  field.type = static_cast<ProtobufField::Type>(tag & 7);
  switch (field.type) {
    case ProtobufField::Type::kVarint: {
      KVICK_ASSIGN_OR_RETURN(field.value, ReadVarint(reader));
      return field;
    }
    case ProtobufField::Type::kFixed64: {
      KVICK_ASSIGN_OR_RETURN(field.value, reader.Read<uint64_t>(kWhat));
      return field;
    }
    case ProtobufField::Type::kBytes: {
      KVICK_ASSIGN_OR_RETURN(const uint64_t num_bytes, ReadVarint(reader));
      KVICK_ASSIGN_OR_RETURN(field.bytes, reader.Take(num_bytes, kWhat));
      return field;
    }
    case ProtobufField::Type::kFixed32: {
      KVICK_ASSIGN_OR_RETURN(field.value, reader.Read<uint32_t>(kWhat));
      return field;
    }
  }
  return Fail(ErrorCode::kCorrupt,
              "{}: the field before offset {}: expected wire type 0, 1, 2 or "
              "5, got {}",
              reader.source(), reader.position(), tag & 7);
}

Result<std::span<const std::byte>> ProtobufField::Bytes(std::string_view name) const {
  if (type != Type::kBytes) return WrongType(name, "bytes", type);
  return bytes;
}

Result<std::string_view> ProtobufField::String(std::string_view name) const {
  if (type != Type::kBytes) return WrongType(name, "a string", type);
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<int64_t> ProtobufField::Int(std::string_view name) const {
  if (type != Type::kVarint) return WrongType(name, "an integer", type);
  return static_cast<int64_t>(value);
}

Result<float> ProtobufField::Float(std::string_view name) const {
  if (type != Type::kFixed32) return WrongType(name, "a float", type);
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

}  // namespace kvick
