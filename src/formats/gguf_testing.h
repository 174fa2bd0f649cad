#ifndef KVICK_FORMATS_GGUF_TESTING_H_
#define KVICK_FORMATS_GGUF_TESTING_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf_value.h"

// A GGUF writer for tests and fuzzers. It checks nothing, so that it can write every kind of
// damage: change a field, then Build().
namespace kvick::testing {

template <class T>
std::string Packed(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string PackedString(std::string_view text) {
  return Packed<uint64_t>(text.size()) + std::string(text);
}

inline std::string PackedArray(GgufType element_type, uint64_t count, std::string_view elements) {
  return Packed(static_cast<uint32_t>(element_type)) + Packed(count) + std::string(elements);
}

struct GgufSpec {
  struct Entry {
    std::string key;
    uint32_t type;
    std::string payload;
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // innermost first, as in the file
    uint32_t type = 0;           // F32
    std::string data = {};
    std::optional<uint64_t> offset = {};    // default: after the tensor before
    std::optional<uint32_t> num_dims = {};  // default: dims.size()
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> num_tensors;  // default: the truth
  std::optional<uint64_t> num_entries;
  uint64_t alignment = 32;  // where tensors are put; write general.alignment to say so
  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

  // Adds the entry, or replaces it.
  void Set(std::string_view key, GgufType type, std::string payload) {
    Entry entry{std::string(key), static_cast<uint32_t>(type), std::move(payload)};
    for (Entry& old : entries) {
      if (old.key == key) {
        old = std::move(entry);
        return;
      }
    }
    entries.push_back(std::move(entry));
  }
  // Adds the entry without a look at the others.
  void AddU32(std::string_view key, uint32_t value) {
    entries.push_back({std::string(key), static_cast<uint32_t>(GgufType::kU32), Packed(value)});
  }
  void SetU32(std::string_view key, uint32_t value) { Set(key, GgufType::kU32, Packed(value)); }
  void SetF32(std::string_view key, float value) { Set(key, GgufType::kF32, Packed(value)); }
  void SetString(std::string_view key, std::string_view value) {
    Set(key, GgufType::kString, PackedString(value));
  }
  void SetStrings(std::string_view key, const std::vector<std::string>& values) {
    std::string elements;
    for (const std::string& value : values) elements += PackedString(value);
    Set(key, GgufType::kArray, PackedArray(GgufType::kString, values.size(), elements));
  }
  void Remove(std::string_view key) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
  }

  Tensor& FindTensor(std::string_view name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const Tensor& tensor) { return tensor.name == name; });
  }
  void RemoveTensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }

  std::string Build() const {
    std::string file = magic + Packed(version) + Packed(num_tensors.value_or(tensors.size())) +
                       Packed(num_entries.value_or(entries.size()));
    for (const Entry& entry : entries) {
      file += PackedString(entry.key) + Packed(entry.type) + entry.payload;
    }
    std::string data;
    for (const Tensor& tensor : tensors) {
      Pad(data);
      file += PackedString(tensor.name);
      file += Packed(tensor.num_dims.value_or(static_cast<uint32_t>(tensor.dims.size())));
      for (const uint64_t size : tensor.dims) file += Packed(size);
      file += Packed(tensor.type) + Packed(tensor.offset.value_or(data.size()));
      data += tensor.data;
    }
    if (!tensors.empty()) Pad(file);
    return file + data;
  }

 private:
  void Pad(std::string& bytes) const {
    while (bytes.size() % alignment != 0) bytes += '\0';
  }
};

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_GGUF_TESTING_H_
