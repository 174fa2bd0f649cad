#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/byte_reader.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/json_members.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as in the reference implementation

struct ElementType {
  std::string_view name;
  int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array kElementTypes{
    ElementType{"F32", 32, DType::kF32},
    ElementType{"F16", 16, DType::kF16},
    ElementType{"BF16", 16, DType::kBF16},
    ElementType{"BOOL", 8, {}},
    ElementType{"U8", 8, {}},
    ElementType{"I8", 8, {}},
    ElementType{"U16", 16, {}},
    ElementType{"I16", 16, {}},
    ElementType{"U32", 32, {}},
    ElementType{"I32", 32, {}},
    ElementType{"U64", 64, {}},
    ElementType{"I64", 64, {}},
    ElementType{"F64", 64, {}},
    ElementType{"C64", 64, {}},
    ElementType{"F8_E4M3", 8, {}},
    ElementType{"F8_E5M2", 8, {}},
    ElementType{"F8_E8M0", 8, {}},
    ElementType{"F6_E2M3", 6, {}},
    ElementType{"F6_E3M2", 6, {}},
    ElementType{"F4", 4, {}},
};

Result<const ElementType*> ParseElementType(const JsonMembers& entry) {
  KVICK_ASSIGN_OR_RETURN(const std::string name, entry.String("dtype"));
  const auto* const type = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                        [&](const ElementType& t) { return t.name == name; });
  if (type == kElementTypes.end()) {
    return Fail(ErrorCode::kUnsupported, "{} is {}, which is not known", entry.Label("dtype"),
                Quoted(name));
  }
  return type;
}

Result<std::vector<int64_t>> ParseInts(const JsonMembers& entry, std::string_view key,
                                       IntRange range) {
  KVICK_ASSIGN_OR_RETURN(const Json* values, entry.Array(key));
  const std::string label = fmt::format("an element of {}", entry.Label(key));
  std::vector<int64_t> numbers;
  for (const Json& value : *values) {
    KVICK_ASSIGN_OR_RETURN(const int64_t number, JsonInt(value, label, range));
    numbers.push_back(number);
  }
  return numbers;
}

// Errors: corrupt: more than 2^63 bits, or not whole bytes.
Result<int64_t> ShapeBytes(std::span<const int64_t> shape, const ElementType& type,
                           std::string_view label) {
  std::optional<int64_t> bits = type.bits;
  for (const int64_t size : shape) {
    if (bits) bits = CheckedProduct({*bits, size});
  }
  if (!bits || *bits % 8 != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: the shape {} of {} is {}", label, ShapeText(shape),
                type.name, bits ? "not a whole number of bytes" : "more than 2^63 bits");
  }
  return *bits / 8;
}

Result<TensorInfo> ParseTensor(const std::string& name, const Json& value,
                               std::span<const std::byte> data) {
  const std::string label = fmt::format("tensor {}", Quoted(name));
  if (!value.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{} is {}, an object is wanted", label, JsonText(value));
  }
  const JsonMembers entry(value, label);
  KVICK_ASSIGN_OR_RETURN(const ElementType* type, ParseElementType(entry));
  KVICK_ASSIGN_OR_RETURN(auto shape, ParseInts(entry, "shape", {.min = 1}));
  KVICK_ASSIGN_OR_RETURN(const auto offsets, ParseInts(entry, "data_offsets", {.min = 0}));
  KVICK_ASSIGN_OR_RETURN(const int64_t num_bytes, ShapeBytes(shape, *type, label));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Fail(ErrorCode::kCorrupt, "{} is {}, [begin, end) is wanted",
                entry.Label("data_offsets"), ShapeText(offsets));
  }
  if (offsets[1] > static_cast<int64_t>(data.size())) {
    return Fail(ErrorCode::kCorrupt, "{} ends at byte {}, the file holds {} bytes of tensors",
                label, offsets[1], data.size());
  }
  if (offsets[1] - offsets[0] != num_bytes) {
    return Fail(ErrorCode::kCorrupt, "{} has {} bytes, {} is wanted for {} {}", label,
                offsets[1] - offsets[0], num_bytes, type->name, ShapeText(shape));
  }
  return TensorInfo{name,     type->name, type->dtype, std::move(shape), data.data() + offsets[0],
                    num_bytes};
}

Result<std::map<std::string, std::string>> ParseMetadata(const Json& object) {
  const bool are_strings =
      object.is_object() && std::all_of(object.begin(), object.end(),
                                        [](const Json& value) { return value.is_string(); });
  if (!are_strings) {
    return Fail(ErrorCode::kCorrupt, "__metadata__ is {}, an object of strings is wanted",
                JsonText(object));
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : object.items()) metadata.emplace(key, value.get<std::string>());
  return metadata;
}

Result<std::string_view> ReadHeader(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const auto num_bytes, reader.Read<uint64_t>("the length of the header"));
  if (num_bytes > kMaxHeaderBytes) {
    return Fail(ErrorCode::kCorrupt, "{}: the header's length is {} bytes, at most {} is possible",
                reader.source(), num_bytes, kMaxHeaderBytes);
  }
  KVICK_ASSIGN_OR_RETURN(const auto bytes, reader.Take(num_bytes, "the header"));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  const std::span bytes(mapping.data(), static_cast<size_t>(mapping.size_bytes()));
  KVICK_ASSIGN_OR_RETURN(SafetensorsFile file, Parse(bytes, path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes,
                                               std::string source) {
  SafetensorsFile file;
  file.source_ = std::move(source);
  ByteReader reader(bytes, file.source_);
  KVICK_ASSIGN_OR_RETURN(const std::string_view text, ReadHeader(reader));
  KVICK_ASSIGN_OR_RETURN(const Json header, ParseJson(text, file.source_));
  if (!header.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: the header is {}, an object is wanted", file.source_,
                JsonText(header));
  }
  const auto data = bytes.subspan(reader.position());
  const auto with_source = WithSource(file.source_);
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      KVICK_ASSIGN_OR_RETURN(file.metadata_, ParseMetadata(entry).map_error(with_source));
      continue;
    }
    KVICK_ASSIGN_OR_RETURN(TensorInfo tensor,
                           ParseTensor(name, entry, data).map_error(with_source));
    tensors.push_back(std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return std::less<>()(a.data, b.data); });
  KVICK_ASSIGN_OR_RETURN(file.tensors_, TensorTable::Create(file.source_, std::move(tensors)));
  return file;
}

}  // namespace kvick
