// Parses a model.safetensors.index.json. It must not name a file outside of its folder.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/shard_index.h"
#include "fuzz.h"

namespace kvick {

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = ParseJson(text, "index").and_then(ShardIndexFromJson);
  if (!index) return 0;
  for (const auto& [tensor, file] : *index) {
    if (file.empty() || file[0] == '.' || file.find_first_of("/\\") != std::string::npos) {
      std::abort();
    }
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {R"({"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})",
          R"({"weight_map":{"a":"../x","b":"x/y","c":"."}})"};
}

}  // namespace kvick
