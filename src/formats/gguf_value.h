#ifndef KVICK_FORMATS_GGUF_VALUE_H_
#define KVICK_FORMATS_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/byte_reader.h"
#include "kvick/status.h"

namespace kvick {

// The numbers that GGUF files hold for the types of metadata values.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// "u8", ..., "f64", "bool", "string", "array".
std::string_view GgufTypeName(GgufType type);

// A metadata value where it lies in the file, whole and inside it. An array stays as it is until
// somebody asks for its elements.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // of an array
  int64_t num_elements = 1;               // of an array
  std::span<const std::byte> bytes;       // the number; a string's characters; an array's elements
};

// Reads a value of `type`, and all that it holds, without allocating: time is linear in its bytes.
// Errors: corrupt: it passes the end, or an element type does not exist;
//         unsupported: more than 4 arrays inside one another.
Result<GgufValue> ReadGgufValue(ByteReader& reader, GgufType type);
Result<GgufType> ReadGgufType(ByteReader& reader);

// The value as a C++ type. `label` starts the message: "model.gguf: llama.block_count".
// Errors: corrupt: another type, or a number out of range;  unsupported: an array of more than 2
// million elements. Any integer type passes for an integer, both floating-point types for a float.
Result<std::string_view> GgufToString(const GgufValue& value, std::string_view label);
Result<int64_t> GgufToInt(const GgufValue& value, std::string_view label);
Result<double> GgufToFloat(const GgufValue& value, std::string_view label);
Result<bool> GgufToBool(const GgufValue& value, std::string_view label);
Result<std::vector<std::string_view>> GgufToStrings(const GgufValue& value, std::string_view label);
Result<std::vector<int64_t>> GgufToInts(const GgufValue& value, std::string_view label);
Result<std::vector<float>> GgufToFloats(const GgufValue& value, std::string_view label);

// For people: the value, strings quoted, of an array the first `max_elements` and their number.
std::string GgufValueText(const GgufValue& value, int64_t max_elements);

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_VALUE_H_
