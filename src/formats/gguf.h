#ifndef KVICK_FORMATS_GGUF_H_
#define KVICK_FORMATS_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "formats/gguf_value.h"
#include "formats/tensor_info.h"
#include "kvick/status.h"

namespace kvick {

struct GgufEntry {
  std::string_view key;  // any bytes
  GgufValue value;
};

// A GGUF file of version 2 or 3, little-endian, checked as a whole when it is opened: every length,
// count, type, dimension and offset agrees with the file's real size. The tensors' bytes are not
// read. Move-only; what it hands out points into the file and lives as long as this does.
//
// A model may be split into files that are named STEM-00001-of-00003.gguf, ...: the first has the
// metadata, each some of the tensors. They are opened as one.
//
// Source  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFile {
 public:
  // Maps the file, and the others of a split model if it is named as one of them; a file of a split
  // model of another name is opened alone. Takes memory for the lists of keys and tensors alone.
  // Errors: not_found, io; corrupt, also a Git LFS pointer, and a part of another model;
  // unsupported: a version other than 2 or 3, big-endian.
  // Cost: at most 256 MiB of each file are read, all that may stand before the tensors' bytes.
  static Result<GgufFile> Open(const std::string& path);
  // `bytes` must outlive the file and all moved from it. `source` names them in messages.
  static Result<GgufFile> Parse(std::span<const std::byte> bytes, std::string source = "gguf");

  // One model of all its parts, in order: at least one.
  // Errors: corrupt: split.no, split.count or split.tensors.count of a part say something else, or
  // two parts have a tensor of one name.
  static Result<GgufFile> Join(std::vector<GgufFile> parts);

  const std::string& source() const { return source_; }  // of a split model, its first file
  int64_t num_parts() const { return 1 + static_cast<int64_t>(other_parts_.size()); }
  uint32_t version() const { return version_; }
  const std::vector<GgufEntry>& metadata() const { return metadata_; }  // in file order
  const TensorTable& tensors() const { return tensors_; }

  // nullptr where there is none.
  const GgufValue* Find(std::string_view key) const;

  // Errors: corrupt: no such key, another type, or out of range.
  Result<std::string_view> GetString(std::string_view key) const;
  Result<int64_t> GetInt(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;
  Result<std::vector<std::string_view>> GetStringArray(std::string_view key) const;
  Result<std::vector<float>> GetFloatArray(std::string_view key) const;

  // The same, but a missing key is nullopt. A key of another type stays an error.
  Result<std::optional<std::string_view>> FindString(std::string_view key) const;
  Result<std::optional<int64_t>> FindInt(std::string_view key) const;
  Result<std::optional<bool>> FindBool(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> FindIntArray(std::string_view key) const;
  // A token id of a vocabulary of `vocab_size` tokens, at most 2^31. nullopt also for an id that is
  // not in the vocabulary: such a token never comes. Errors: corrupt: negative.
  Result<std::optional<int32_t>> FindTokenId(std::string_view key, int64_t vocab_size) const;

 private:
  static constexpr std::string_view kSplitCountKey = "split.count";

  GgufFile() = default;

  static Result<GgufFile> OpenSingle(const std::string& path);
  static Result<GgufFile> OpenPart(const std::string& path, int64_t num_parts);

  Status ReadMetadata(ByteReader& reader, uint64_t num_entries);
  Status ReadAlignment();
  Status ReadTensors(ByteReader& reader, uint64_t num_tensors,
                     std::span<const std::byte> file_bytes);

  template <class T>
  using Reader = Result<T> (*)(const GgufValue& value, std::string_view label);
  template <class T>
  Result<T> Get(std::string_view key, Reader<T> read) const;
  template <class T>
  Result<std::optional<T>> FindAs(std::string_view key, Reader<T> read) const;

  std::string source_;
  MappedFile mapping_;  // empty after Parse
  uint32_t version_ = 0;
  int64_t alignment_ = 32;
  std::vector<GgufEntry> metadata_;
  std::map<std::string_view, size_t> by_key_;  // indices into metadata_
  TensorTable tensors_;                        // of all parts
  std::vector<GgufFile> other_parts_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_H_
