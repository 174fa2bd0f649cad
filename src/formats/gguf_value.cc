#include "formats/gguf_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/check.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr int kMaxArrayDepth = 4;
// Tokens are 0.3 million and merges 0.6 million in the largest vocabularies. The least that an
// element takes in a file is a byte, and that of a hole; in a tokenizer it is up to 200 bytes.
constexpr int64_t kMaxElements = 2'000'000;
constexpr uint64_t kMaxInt = std::numeric_limits<int64_t>::max();

// Bytes of a number; 0 for what has a length of its own.
uint64_t ScalarBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

// The least that an element can take: its number, a string's length, an array's type and count.
uint64_t MinBytes(GgufType type) {
  if (type == GgufType::kString) return sizeof(uint64_t);
  if (type == GgufType::kArray) return sizeof(uint32_t) + sizeof(uint64_t);
  return ScalarBytes(type);
}

Result<GgufValue> ReadValue(ByteReader& reader, GgufType type, int depth);

Result<GgufValue> ReadArray(ByteReader& reader, int depth) {
  if (depth == kMaxArrayDepth) {
    return Fail(
        ErrorCode::kUnsupported,
        "{}: an array at offset {}: expected at most {} arrays inside one another, got more",
        reader.source(), reader.position(), kMaxArrayDepth);
  }
  KVICK_ASSIGN_OR_RETURN(const GgufType element_type, ReadGgufType(reader));
  KVICK_ASSIGN_OR_RETURN(const auto count, reader.Read<uint64_t>("the length of an array"));
  if (count > reader.num_left() / MinBytes(element_type)) {
    return Fail(ErrorCode::kCorrupt,
                "{}: an array at offset {}: expected at most {} elements of type {}, got {}",
                reader.source(), reader.position(), reader.num_left() / MinBytes(element_type),
                GgufTypeName(element_type), count);
  }
  GgufValue array{GgufType::kArray, element_type, static_cast<int64_t>(count), {}};
  ByteReader start = reader;
  if (const uint64_t scalar_bytes = ScalarBytes(element_type); scalar_bytes > 0) {
    KVICK_ASSIGN_OR_RETURN(array.bytes, reader.Take(count * scalar_bytes, "an array"));
    return array;
  }
  for (uint64_t i = 0; i < count; ++i) {
    KVICK_RETURN_IF_ERROR(ReadValue(reader, element_type, depth + 1));
  }
  KVICK_ASSIGN_OR_RETURN(array.bytes, start.Take(reader.position() - start.position(), "an array"));
  return array;
}

Result<GgufValue> ReadValue(ByteReader& reader, GgufType type, int depth) {
  if (type == GgufType::kArray) return ReadArray(reader, depth);
  uint64_t num_bytes = ScalarBytes(type);
  if (type == GgufType::kString) {
    KVICK_ASSIGN_OR_RETURN(num_bytes, reader.Read<uint64_t>("the length of a string"));
  }
  GgufValue value{type, type, 1, {}};
  KVICK_ASSIGN_OR_RETURN(value.bytes, reader.Take(num_bytes, "a value"));
  return value;
}

template <class T>
T Load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

bool IsInteger(GgufType type) {
  return ScalarBytes(type) > 0 && type != GgufType::kF32 && type != GgufType::kF64 &&
         type != GgufType::kBool;
}

bool IsFloat(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }

// REQUIRES: IsInteger(type). Above the range of int64_t: nullopt.
std::optional<int64_t> LoadInt(GgufType type, std::span<const std::byte> bytes) {
  switch (type) {
    case GgufType::kU8:
      return Load<uint8_t>(bytes);
    case GgufType::kI8:
      return Load<int8_t>(bytes);
    case GgufType::kU16:
      return Load<uint16_t>(bytes);
    case GgufType::kI16:
      return Load<int16_t>(bytes);
    case GgufType::kU32:
      return Load<uint32_t>(bytes);
    case GgufType::kI32:
      return Load<int32_t>(bytes);
    case GgufType::kU64: {
      const auto value = Load<uint64_t>(bytes);
      if (value > kMaxInt) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      KVICK_CHECK(type == GgufType::kI64);
      return Load<int64_t>(bytes);
  }
}

double LoadFloat(GgufType type, std::span<const std::byte> bytes) {
  return type == GgufType::kF32 ? Load<float>(bytes) : Load<double>(bytes);
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string TypePhrase(const GgufValue& value) {
  if (value.type == GgufType::kArray) {
    return fmt::format("an array of {}", GgufTypeName(value.element_type));
  }
  const std::string_view name = GgufTypeName(value.type);
  return fmt::format("{} {}", name[0] == 'i' ? "an" : "a", name);
}

tl::unexpected<Error> WrongType(std::string_view label, const GgufValue& value,
                                std::string_view expected) {
  return Fail(ErrorCode::kCorrupt, "{}: expected {}, got {}", label, expected, TypePhrase(value));
}

tl::unexpected<Error> TooLarge(std::string_view label, std::span<const std::byte> bytes) {
  return Fail(ErrorCode::kCorrupt, "{}: expected at most {}, got {}", label, kMaxInt,
              Load<uint64_t>(bytes));
}

// An array is copied element by element: its length must not come from a header alone.
Status CheckLength(std::string_view label, const GgufValue& array) {
  if (array.num_elements <= kMaxElements) return {};
  return Fail(ErrorCode::kUnsupported, "{}: expected at most {} elements, got {}", label,
              kMaxElements, array.num_elements);
}

// Element `i` of an array of numbers.
std::span<const std::byte> NumberAt(const GgufValue& array, int64_t i) {
  const uint64_t size = ScalarBytes(array.element_type);
  return array.bytes.subspan(static_cast<uint64_t>(i) * size, size);
}

std::string ScalarText(const GgufValue& value) {
  if (value.type == GgufType::kString) return Quoted(AsText(value.bytes));
  if (value.type == GgufType::kBool) return Load<uint8_t>(value.bytes) != 0 ? "true" : "false";
  if (value.type == GgufType::kF32) return fmt::format("{}", Load<float>(value.bytes));
  if (value.type == GgufType::kF64) return fmt::format("{}", Load<double>(value.bytes));
  if (value.type == GgufType::kU64) return fmt::format("{}", Load<uint64_t>(value.bytes));
  return fmt::format("{}", *LoadInt(value.type, value.bytes));
}

}  // namespace

std::string_view GgufTypeName(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return "u8";
    case GgufType::kI8:
      return "i8";
    case GgufType::kU16:
      return "u16";
    case GgufType::kI16:
      return "i16";
    case GgufType::kU32:
      return "u32";
    case GgufType::kI32:
      return "i32";
    case GgufType::kF32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kU64:
      return "u64";
    case GgufType::kI64:
      return "i64";
    case GgufType::kF64:
      return "f64";
  }
  return "unknown";
}

Result<GgufType> ReadGgufType(ByteReader& reader) {
  const uint64_t position = reader.position();
  KVICK_ASSIGN_OR_RETURN(const auto id, reader.Read<uint32_t>("the type of a value"));
  constexpr auto kLast = static_cast<uint32_t>(GgufType::kF64);
  if (id > kLast) {
    return Fail(ErrorCode::kCorrupt, "{}: a value's type at offset {}: expected 0 to {}, got {}",
                reader.source(), position, kLast, id);
  }
  return static_cast<GgufType>(id);
}

Result<GgufValue> ReadGgufValue(ByteReader& reader, GgufType type) {
  return ReadValue(reader, type, 0);
}

Result<std::string_view> GgufToString(const GgufValue& value, std::string_view label) {
  if (value.type != GgufType::kString) return WrongType(label, value, "a string");
  return AsText(value.bytes);
}

Result<int64_t> GgufToInt(const GgufValue& value, std::string_view label) {
  if (!IsInteger(value.type)) return WrongType(label, value, "an integer");
  const std::optional<int64_t> number = LoadInt(value.type, value.bytes);
  if (!number) return TooLarge(label, value.bytes);
  return *number;
}

Result<double> GgufToFloat(const GgufValue& value, std::string_view label) {
  if (!IsFloat(value.type)) return WrongType(label, value, "a floating-point number");
  return LoadFloat(value.type, value.bytes);
}

Result<bool> GgufToBool(const GgufValue& value, std::string_view label) {
  if (value.type != GgufType::kBool) return WrongType(label, value, "a bool");
  const auto byte = Load<uint8_t>(value.bytes);
  if (byte > 1) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a bool of 0 or 1, got {}", label, byte);
  }
  return byte == 1;
}

Result<std::vector<std::string_view>> GgufToStrings(const GgufValue& value,
                                                    std::string_view label) {
  if (value.type != GgufType::kArray || value.element_type != GgufType::kString) {
    return WrongType(label, value, "an array of strings");
  }
  KVICK_RETURN_IF_ERROR(CheckLength(label, value));
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<size_t>(value.num_elements));
  ByteReader reader(value.bytes, label);
  for (int64_t i = 0; i < value.num_elements; ++i) {
    KVICK_ASSIGN_OR_RETURN(const GgufValue element, ReadGgufValue(reader, GgufType::kString));
    strings.push_back(AsText(element.bytes));
  }
  return strings;
}

Result<std::vector<int64_t>> GgufToInts(const GgufValue& value, std::string_view label) {
  if (value.type != GgufType::kArray || !IsInteger(value.element_type)) {
    return WrongType(label, value, "an array of integers");
  }
  KVICK_RETURN_IF_ERROR(CheckLength(label, value));
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(value.num_elements));
  for (int64_t i = 0; i < value.num_elements; ++i) {
    const auto number = LoadInt(value.element_type, NumberAt(value, i));
    if (!number) return TooLarge(fmt::format("{}[{}]", label, i), NumberAt(value, i));
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<float>> GgufToFloats(const GgufValue& value, std::string_view label) {
  if (value.type != GgufType::kArray || !IsFloat(value.element_type)) {
    return WrongType(label, value, "an array of floating-point numbers");
  }
  KVICK_RETURN_IF_ERROR(CheckLength(label, value));
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(value.num_elements));
  for (int64_t i = 0; i < value.num_elements; ++i) {
    numbers.push_back(static_cast<float>(LoadFloat(value.element_type, NumberAt(value, i))));
  }
  return numbers;
}

std::string GgufValueText(const GgufValue& value, int64_t max_elements) {
  if (value.type != GgufType::kArray) return ScalarText(value);
  std::string text = "[";
  ByteReader reader(value.bytes, "array");
  const int64_t num_shown = std::min(value.num_elements, max_elements);
  for (int64_t i = 0; i < num_shown; ++i) {
    const auto element = ReadGgufValue(reader, value.element_type);
    KVICK_CHECK(element.has_value());  // read once before, when the file was opened
    text += (i > 0 ? ", " : "") + GgufValueText(*element, max_elements);
  }
  if (num_shown < value.num_elements) {
    text += fmt::format(", ... {} in all", value.num_elements);
  }
  return text + "]";
}

}  // namespace kvick
