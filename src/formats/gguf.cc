#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/gguf_tensor_type.h"
#include "formats/lfs_pointer.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;  // the specification's limit for keys
constexpr uint32_t kMaxDims = 4;
// All that stands before the tensors' bytes: ten times as much as the largest vocabularies need. A
// file may be a hole of any size, which must not be walked over.
constexpr size_t kMaxHeaderBytes = size_t{256} << 20;
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
                "{}: the length of {} at offset {}: expected at most {}, got {}", reader.source(),
                what, reader.position(), kMaxNameBytes, num_bytes);
  }
  KVICK_ASSIGN_OR_RETURN(const auto bytes, reader.Take(num_bytes, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status CheckVersion(std::string_view source, uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (version != 0 && (version & 0xffffu) == 0) {  // so are the small numbers of the other order
    return Fail(ErrorCode::kUnsupported,
                "{}: expected a little-endian GGUF file, got a big-endian one", source);
  }
  return Fail(ErrorCode::kUnsupported, "{}: expected GGUF version 2 or 3, got {}", source, version);
}

Status CheckCount(const ByteReader& reader, std::string_view what, uint64_t count,
                  uint64_t min_bytes) {
  if (count <= reader.num_left() / min_bytes) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected at most {} {} in a file of this size, got {}",
              reader.source(), reader.num_left() / min_bytes, what, count);
}

Result<Header> ReadHeader(ByteReader& reader) {
  KVICK_ASSIGN_OR_RETURN(const auto magic, reader.Take(4, "the magic"));
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (text != "GGUF") {
    return Fail(ErrorCode::kCorrupt, "{}: expected a GGUF file, got one that begins with {}",
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
    return Fail(ErrorCode::kCorrupt, "{}: expected 1 to {} dimensions, got {}", label, kMaxDims,
                num_dims);
  }
  std::vector<int64_t> shape(num_dims);
  for (uint32_t i = 0; i < num_dims; ++i) {
    KVICK_ASSIGN_OR_RETURN(const auto size, reader.Read<uint64_t>("the dimensions of a tensor"));
    if (size > uint64_t{INT64_MAX}) {
      return Fail(ErrorCode::kCorrupt, "{}: dimension {}: expected at most {}, got {}", label, i,
                  INT64_MAX, size);
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
    return Fail(ErrorCode::kCorrupt,
                "{}: expected rows of a multiple of {} elements for {}, got rows of {}", label,
                type.block_elements, type.name, row_elements);
  }
  std::optional<int64_t> num_blocks = NumElements(shape);
  if (num_blocks) *num_blocks /= type.block_elements;
  const auto num_bytes = CheckedProduct({num_blocks.value_or(-1), type.block_bytes});
  if (!num_bytes) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a shape of less than 2^63 bytes, got {}", label,
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
  const auto type = FindGgufTensorType(type_id);
  if (!type) {
    return Fail(ErrorCode::kUnsupported, "{}: expected the number of a ggml type, got {}", label,
                type_id);
  }
  tensor.info.type_name = type->name;
  tensor.info.format = type->format;
  KVICK_ASSIGN_OR_RETURN(tensor.info.num_bytes, TensorBytes(*type, tensor.info.shape, label));
  KVICK_ASSIGN_OR_RETURN(tensor.offset, reader.Read<uint64_t>("the offset of a tensor"));
  return tensor;
}

Status Place(PlacedTensor& tensor, std::span<const std::byte> data, int64_t alignment,
             std::string_view source) {
  tensor.info.data = data.data();
  if (tensor.info.num_bytes == 0) return {};  // it lies nowhere
  if (tensor.offset % static_cast<uint64_t>(alignment) != 0) {
    return Fail(ErrorCode::kCorrupt,
                "{}: tensor {}: expected an offset that is a multiple of {}, got {}", source,
                Quoted(tensor.info.name), alignment, tensor.offset);
  }
  const auto num_bytes = static_cast<uint64_t>(tensor.info.num_bytes);
  if (tensor.offset > data.size() || num_bytes > data.size() - tensor.offset) {
    return Fail(
        ErrorCode::kCorrupt,
        "{}: tensor {}: expected {} bytes at offset {}, got a file with {} bytes of tensors",
        source, Quoted(tensor.info.name), num_bytes, tensor.offset, data.size());
  }
  tensor.info.data += tensor.offset;
  return {};
}

}  // namespace

Result<GgufFile> GgufFile::OpenSingle(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  const std::span bytes(mapping.data(), static_cast<size_t>(mapping.size_bytes()));
  KVICK_ASSIGN_OR_RETURN(GgufFile file, Parse(bytes, path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, std::string source) {
  GgufFile file;
  file.source_ = std::move(source);
  KVICK_RETURN_IF_ERROR(CheckNoLfsPointer(bytes, file.source_));
  ByteReader reader(bytes.first(std::min(bytes.size(), kMaxHeaderBytes)), file.source_);
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
      return Fail(ErrorCode::kCorrupt, "{}: expected one metadata entry {}, got two", source_,
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
    return Fail(ErrorCode::kCorrupt, "{}: general.alignment: expected a power of two, got {}",
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
  const uint64_t num_left = file_bytes.size() - reader.position();
  const auto data = file_bytes.subspan(reader.position() + std::min(padding, num_left));
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

Result<std::optional<int32_t>> GgufFile::FindTokenId(std::string_view key,
                                                     int64_t vocab_size) const {
  KVICK_ASSIGN_OR_RETURN(const auto id, FindInt(key));
  if (!id || *id >= vocab_size) return std::nullopt;
  if (*id < 0) {
    return Fail(ErrorCode::kCorrupt, "{}: {}: expected a token id, got {}", source_, key, *id);
  }
  return static_cast<int32_t>(*id);
}

}  // namespace kvick
