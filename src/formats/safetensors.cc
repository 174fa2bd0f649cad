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
#include "formats/lfs_pointer.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as in the reference implementation

struct ElementType {
  std::string_view name;
  int64_t bits;
  const WeightFormat* format;
};

const std::array kElementTypes{
    ElementType{"F32", 32, &FormatOf(WeightType::kF32)},
    ElementType{"F16", 16, &FormatOf(WeightType::kF16)},
    ElementType{"BF16", 16, &FormatOf(WeightType::kBF16)},
    ElementType{"BOOL", 8, nullptr},
    ElementType{"U8", 8, nullptr},
    ElementType{"I8", 8, nullptr},
    ElementType{"U16", 16, nullptr},
    ElementType{"I16", 16, nullptr},
    ElementType{"U32", 32, nullptr},
    ElementType{"I32", 32, nullptr},
    ElementType{"U64", 64, nullptr},
    ElementType{"I64", 64, nullptr},
    ElementType{"F64", 64, nullptr},
    ElementType{"C64", 64, nullptr},
    ElementType{"F8_E4M3", 8, nullptr},
    ElementType{"F8_E5M2", 8, nullptr},
    ElementType{"F8_E8M0", 8, nullptr},
    ElementType{"F6_E2M3", 6, nullptr},
    ElementType{"F6_E3M2", 6, nullptr},
    ElementType{"F4", 4, nullptr},
};

Result<const ElementType*> ParseElementType(const JsonMembers& entry) {
  KVICK_ASSIGN_OR_RETURN(const std::string name, entry.String("dtype"));
  const auto* const type = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                        [&](const ElementType& t) { return t.name == name; });
  if (type == kElementTypes.end()) {
    return Fail(ErrorCode::kUnsupported, "{}: expected a known type, got {}", entry.Label("dtype"),
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
  const auto bits = CheckedProduct({NumElements(shape).value_or(-1), type.bits});
  if (!bits || *bits % 8 != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {}, got {} {}", label,
                bits ? "a whole number of bytes" : "less than 2^63 bits", type.name,
                ShapeText(shape));
  }
  return *bits / 8;
}

Result<TensorInfo> ParseTensor(const std::string& name, const Json& value,
                               std::span<const std::byte> data) {
  const std::string label = fmt::format("tensor {}", Quoted(name));
  if (!value.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected an object, got {}", label, JsonText(value));
  }
  const JsonMembers entry(value, label);
  KVICK_ASSIGN_OR_RETURN(const ElementType* type, ParseElementType(entry));
  KVICK_ASSIGN_OR_RETURN(auto shape, ParseInts(entry, "shape", {.min = 0}));
  KVICK_ASSIGN_OR_RETURN(const auto offsets, ParseInts(entry, "data_offsets", {.min = 0}));
  KVICK_ASSIGN_OR_RETURN(const int64_t num_bytes, ShapeBytes(shape, *type, label));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Fail(ErrorCode::kCorrupt, "{}: expected [begin, end), got {}",
                entry.Label("data_offsets"), ShapeText(offsets));
  }
  if (offsets[1] > static_cast<int64_t>(data.size())) {
    return Fail(ErrorCode::kCorrupt, "{}: expected its end within the {} bytes of tensors, got {}",
                label, data.size(), offsets[1]);
  }
  if (offsets[1] - offsets[0] != num_bytes) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {} bytes for {} {}, got {}", label, num_bytes,
                type->name, ShapeText(shape), offsets[1] - offsets[0]);
  }
  return TensorInfo{name,     type->name, type->format, std::move(shape), data.data() + offsets[0],
                    num_bytes};
}

Result<std::map<std::string, std::string>> ParseMetadata(const JsonMembers& header) {
  std::map<std::string, std::string> metadata;
  if (header.Find(kMetadataKey) == nullptr) return metadata;
  KVICK_ASSIGN_OR_RETURN(const Json* object, header.Object(kMetadataKey));
  const JsonMembers members(*object, header.Label(kMetadataKey));
  for (const auto& [key, value] : object->items()) {
    KVICK_ASSIGN_OR_RETURN(metadata[key], members.String(key));
  }
  return metadata;
}

Result<std::string_view> ReadHeader(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const auto num_bytes, reader.Read<uint64_t>("the length of the header"));
  if (num_bytes > kMaxHeaderBytes) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a header of at most {} bytes, got {}",
                reader.source(), kMaxHeaderBytes, num_bytes);
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
  KVICK_RETURN_IF_ERROR(CheckNoLfsPointer(bytes, file.source_));
  ByteReader reader(bytes, file.source_);
  KVICK_ASSIGN_OR_RETURN(const std::string_view text, ReadHeader(reader));
  KVICK_ASSIGN_OR_RETURN(const Json header, ParseJson(text, file.source_));
  if (!header.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: the header: expected an object, got {}", file.source_,
                JsonText(header));
  }
  const auto data = bytes.subspan(reader.position());
  const auto with_source = WithSource(file.source_);
  KVICK_ASSIGN_OR_RETURN(file.metadata_, ParseMetadata(JsonMembers(header)).map_error(with_source));
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) continue;
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
