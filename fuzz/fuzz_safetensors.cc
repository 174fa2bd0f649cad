// Parses a safetensors file and reads all of its tensors.

#include <span>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "formats/safetensors_testing.h"
#include "fuzz.h"

namespace kvick {

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = SafetensorsFile::Parse(std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  [[maybe_unused]] volatile unsigned sum = 0;
  for (const TensorInfo& tensor : file->tensors().all()) {
    if (tensor.num_bytes == 0) continue;
    sum = sum + static_cast<unsigned>(tensor.data[0]);
    sum = sum + static_cast<unsigned>(tensor.data[tensor.num_bytes - 1]);
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {testing::SafetensorsBytes({{"a", "F32", {2, 2}, std::string(16, 'a')},
                                     {"b", "BF16", {}, "bb"},
                                     {"c", "F4", {4}, "cc"},
                                     {"d", "F32", {0, 3}, ""}}),
          testing::SafetensorsBytes(R"({"__metadata__":{"format":"pt"}})", "")};
}

}  // namespace kvick
