#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/gguf_tensor_type.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;  // the specification's limit for keys
constexpr uint32_t kMaxDims = 4;
// The least that one of them takes: empty name, one dimension; empty key, one-byte value.
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;

struct Header {
  uint32_t version;
  uint64_t num_tensors;
  uint64_t num_entries;
};

Result<std::string_view> ReadName(ByteReader& reader, std::string_view what) {
  KVICK_ASSIGN_OR_RETURN(const auto num_bytes, reader.Read<uint64_t>(what));
  if (num_bytes > kMaxNameBytes) {
    return Fail(ErrorCode::kCorrupt,
                "{}: the length of {} at offset {} is {}, at most {} is possible", reader.source(),
                what, reader.position(), num_bytes, kMaxNameBytes);
  }
  KVICK_ASSIGN_OR_RETURN(const auto bytes, reader.Take(num_bytes, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status CheckVersion(std::string_view source, uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (version != 0 && (version & 0xffffu) == 0) {  // so are the small numbers of the other order
    return Fail(ErrorCode::kUnsupported, "{}: a big-endian GGUF file, little-endian is wanted",
                source);
  }
  return Fail(ErrorCode::kUnsupported, "{}: GGUF version {}, only 2 and 3 are possible", source,
              version);
}

Status CheckCount(const ByteReader& reader, std::string_view what, uint64_t count,
                  uint64_t min_bytes) {
  if (count <= reader.num_left() / min_bytes) return {};
  return Fail(ErrorCode::kCorrupt, "{}: the number of {} is {}, the file has room for {}",
              reader.source(), what, count, reader.num_left() / min_bytes);
}

Result<Header> ReadHeader(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const auto magic, reader.Take(4, "the magic"));
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (text != "GGUF") {
    return Fail(ErrorCode::kCorrupt, "{}: not a GGUF file: it begins with {}, \"GGUF\" is wanted",
                reader.source(), Quoted(text));
  }
  Header header{};
  KVICK_ASSIGN_OR_RETURN(header.version, reader.Read<uint32_t>("the version"));
  KVICK_RETURN_IF_ERROR(CheckVersion(reader.source(), header.version));
  KVICK_ASSIGN_OR_RETURN(header.num_tensors, reader.Read<uint64_t>("the number of tensors"));
  KVICK_ASSIGN_OR_RETURN(header.num_entries,
                         reader.Read<uint64_t>("the number of metadata entries"));
  KVICK_RETURN_IF_ERROR(CheckCount(reader, "tensors", header.num_tensors, kMinTensorBytes));
  KVICK_RETURN_IF_ERROR(CheckCount(reader, "metadata entries", header.num_entries, kMinEntryBytes));
  return header;
}

// A tensor and where the file says that it lies, counted from the start of the tensors' bytes.
struct PlacedTensor {
  TensorInfo info;
  uint64_t offset;
};

// GGUF counts dimensions from the innermost.
Result<std::vector<int64_t>> ReadShape(ByteReader& reader, std::string_view label) {
  KVICK_ASSIGN_OR_RETURN(const auto num_dims, reader.Read<uint32_t>("the dimensions of a tensor"));
  if (num_dims < 1 || num_dims > kMaxDims) {
    return Fail(ErrorCode::kCorrupt, "{} has {} dimensions, 1 to {} is possible", label, num_dims,
                kMaxDims);
  }
  std::vector<int64_t> shape(num_dims);
  for (uint32_t i = 0; i < num_dims; ++i) {
    KVICK_ASSIGN_OR_RETURN(const auto size, reader.Read<uint64_t>("the dimensions of a tensor"));
    if (size < 1 || size > uint64_t{INT64_MAX}) {
      return Fail(ErrorCode::kCorrupt, "{}: dimension {} is {}, 1 to {} is possible", label, i,
                  size, INT64_MAX);
    }
    shape[num_dims - 1 - i] = static_cast<int64_t>(size);
  }
  return shape;
}

// Errors: corrupt: the rows are not whole blocks, or the size does not fit 63 bits.
Result<int64_t> TensorBytes(const GgufTensorType& type, std::span<const int64_t> shape,
                            std::string_view label) {
  const int64_t row_elements = shape.back();
  if (row_elements % type.block_elements != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: a row has {} elements, a multiple of {} is wanted for {}",
                label, row_elements, type.block_elements, type.name);
  }
  std::optional<int64_t> num_bytes =
      CheckedProduct({row_elements / type.block_elements, type.block_bytes});
  for (const int64_t size : shape.first(shape.size() - 1)) {
    if (num_bytes) num_bytes = CheckedProduct({*num_bytes, size});
  }
  if (!num_bytes) {
    return Fail(ErrorCode::kCorrupt, "{}: the shape {} is more than 2^63 bytes", label,
                ShapeText(shape));
  }
  return *num_bytes;
}

Result<PlacedTensor> ReadTensor(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const std::string_view name, ReadName(reader, "the name of a tensor"));
  const std::string label = fmt::format("{}: tensor {}", reader.source(), Quoted(name));
  PlacedTensor tensor{};
  tensor.info.name = name;
  KVICK_ASSIGN_OR_RETURN(tensor.info.shape, ReadShape(reader, label));
  KVICK_ASSIGN_OR_RETURN(const auto type_id, reader.Read<uint32_t>("the type of a tensor"));
  const GgufTensorType* type = FindGgufTensorType(type_id);
  if (type == nullptr) {
    return Fail(ErrorCode::kUnsupported, "{} has the type number {}, which no known ggml type has",
                label, type_id);
  }
  tensor.info.type_name = type->name;
  tensor.info.dtype = type->dtype;
  KVICK_ASSIGN_OR_RETURN(tensor.info.num_bytes, TensorBytes(*type, tensor.info.shape, label));
  KVICK_ASSIGN_OR_RETURN(tensor.offset, reader.Read<uint64_t>("the offset of a tensor"));
  return tensor;
}

Status Place(PlacedTensor& tensor, std::span<const std::byte> data, int64_t alignment,
             std::string_view source) {
  if (tensor.offset % static_cast<uint64_t>(alignment) != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {} has the offset {}, a multiple of {} is wanted",
                source, Quoted(tensor.info.name), tensor.offset, alignment);
  }
  const auto num_bytes = static_cast<uint64_t>(tensor.info.num_bytes);
  if (tensor.offset > data.size() || num_bytes > data.size() - tensor.offset) {
    return Fail(ErrorCode::kCorrupt,
                "{}: tensor {} has {} bytes at offset {}, the file holds {} bytes of tensors",
                source, Quoted(tensor.info.name), num_bytes, tensor.offset, data.size());
  }
  tensor.info.data = data.data() + tensor.offset;
  return {};
}

}  // namespace

Result<GgufFile> GgufFile::Open(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  const std::span bytes(mapping.data(), static_cast<size_t>(mapping.size_bytes()));
  KVICK_ASSIGN_OR_RETURN(GgufFile file, Parse(bytes, path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, std::string source) {
  GgufFile file;
  file.source_ = std::move(source);
  ByteReader reader(bytes, file.source_);
  KVICK_ASSIGN_OR_RETURN(const Header header, ReadHeader(reader));
  file.version_ = header.version;
  KVICK_RETURN_IF_ERROR(file.ReadMetadata(reader, header.num_entries));
  KVICK_RETURN_IF_ERROR(file.ReadAlignment());
  KVICK_RETURN_IF_ERROR(file.ReadTensors(reader, header.num_tensors, bytes));
  return file;
}

Status GgufFile::ReadMetadata(ByteReader& reader, uint64_t num_entries) {
  for (uint64_t i = 0; i < num_entries; ++i) {
    GgufEntry entry;
    KVICK_ASSIGN_OR_RETURN(entry.key, ReadName(reader, "a metadata key"));
    KVICK_ASSIGN_OR_RETURN(const GgufType type, ReadGgufType(reader));
    KVICK_ASSIGN_OR_RETURN(entry.value, ReadGgufValue(reader, type));
    if (!by_key_.emplace(entry.key, metadata_.size()).second) {
      return Fail(ErrorCode::kCorrupt, "{}: there are two metadata entries {}", source_,
                  Quoted(entry.key));
    }
    metadata_.push_back(entry);
  }
  return {};
}

Status GgufFile::ReadAlignment() {
  KVICK_ASSIGN_OR_RETURN(const auto alignment, FindInt("general.alignment"));
  if (!alignment) return {};
  if (*alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    return Fail(ErrorCode::kCorrupt, "{}: general.alignment is {}, a power of two is wanted",
                source_, *alignment);
  }
  alignment_ = *alignment;
  return {};
}

Status GgufFile::ReadTensors(ByteReader& reader, uint64_t num_tensors,
                             std::span<const std::byte> file_bytes) {
  std::vector<PlacedTensor> placed;
  for (uint64_t i = 0; i < num_tensors; ++i) {
    KVICK_ASSIGN_OR_RETURN(PlacedTensor tensor, ReadTensor(reader));
    placed.push_back(std::move(tensor));
  }
  // Without tensors, a file may end where the padding before them would begin.
  const uint64_t padding = -reader.position() & (static_cast<uint64_t>(alignment_) - 1);
  const auto data = file_bytes.subspan(reader.position() + std::min(padding, reader.num_left()));
  std::vector<TensorInfo> tensors;
  tensors.reserve(placed.size());
  for (PlacedTensor& tensor : placed) {
    KVICK_RETURN_IF_ERROR(Place(tensor, data, alignment_, source_));
    tensors.push_back(std::move(tensor.info));
  }
  KVICK_ASSIGN_OR_RETURN(tensors_, TensorTable::Create(source_, std::move(tensors)));
  return {};
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto place = by_key_.find(key);
  return place == by_key_.end() ? nullptr : &metadata_[place->second].value;
}

template <class T>
Result<std::optional<T>> GgufFile::FindAs(std::string_view key, Reader<T> read) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<T>();
  KVICK_ASSIGN_OR_RETURN(T converted, read(*value, fmt::format("{}: {}", source_, key)));
  return std::optional<T>(std::move(converted));
}

template <class T>
Result<T> GgufFile::Get(std::string_view key, Reader<T> read) const {
  KVICK_ASSIGN_OR_RETURN(std::optional<T> value, FindAs(key, read));
  if (!value) return Fail(ErrorCode::kCorrupt, "{}: {} is missing", source_, key);
  return *std::move(value);
}

Result<std::string_view> GgufFile::GetString(std::string_view key) const {
  return Get(key, GgufToString);
}
Result<int64_t> GgufFile::GetInt(std::string_view key) const { return Get(key, GgufToInt); }
Result<double> GgufFile::GetFloat(std::string_view key) const { return Get(key, GgufToFloat); }
Result<std::vector<std::string_view>> GgufFile::GetStringArray(std::string_view key) const {
  return Get(key, GgufToStrings);
}
Result<std::vector<float>> GgufFile::GetFloatArray(std::string_view key) const {
  return Get(key, GgufToFloats);
}

Result<std::optional<std::string_view>> GgufFile::FindString(std::string_view key) const {
  return FindAs(key, GgufToString);
}
Result<std::optional<int64_t>> GgufFile::FindInt(std::string_view key) const {
  return FindAs(key, GgufToInt);
}
Result<std::optional<bool>> GgufFile::FindBool(std::string_view key) const {
  return FindAs(key, GgufToBool);
}
Result<std::optional<std::vector<int64_t>>> GgufFile::FindIntArray(std::string_view key) const {
  return FindAs(key, GgufToInts);
}

}  // namespace kvick
