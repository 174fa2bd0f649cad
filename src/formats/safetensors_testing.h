#ifndef KVICK_FORMATS_SAFETENSORS_TESTING_H_
#define KVICK_FORMATS_SAFETENSORS_TESTING_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_testing.h"

// A safetensors writer for tests and fuzzers. It checks nothing.
namespace kvick::testing {

inline std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  return Packed<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};

inline std::string SafetensorsBytes(const std::vector<SafetensorsTensor>& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const SafetensorsTensor& tensor : tensors) {
    entries.push_back(fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  tensor.name, tensor.dtype, fmt::join(tensor.shape, ","),
                                  data.size(), data.size() + tensor.data.size()));
    data += tensor.data;
  }
  return SafetensorsBytes(fmt::format("{{{}}}", fmt::join(entries, ",")), data);
}

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_SAFETENSORS_TESTING_H_
