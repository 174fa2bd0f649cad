// Joins the parts of a split model, and parses the name of a part. The input is the size of the
// first part, in four bytes, and both parts.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf.h"
#include "formats/gguf_parts.h"
#include "formats/gguf_testing.h"
#include "fuzz.h"

namespace kvick {
namespace {

void CheckName(std::string_view path) {
  const auto name = ParseGgufPartName(path);
  if (name && GgufPartPath(*name, name->number) != path) std::abort();
}

std::string Seed(bool same_tensor) {
  std::string parts[2];
  for (uint16_t i = 0; i < 2; ++i) {
    testing::GgufSpec spec;
    spec.Set("split.no", GgufType::kU16, testing::Packed(i));
    spec.Set("split.count", GgufType::kU16, testing::Packed<uint16_t>(2));
    spec.Set("split.tensors.count", GgufType::kI32, testing::Packed<int32_t>(2));
    spec.tensors.push_back(
        {.name = same_tensor || i == 0 ? "a" : "b", .dims = {2}, .data = std::string(8, 'x')});
    parts[i] = spec.Build();
  }
  return testing::Packed(static_cast<uint32_t>(parts[0].size())) + parts[0] + parts[1];
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckName({reinterpret_cast<const char*>(data), size});
  uint32_t num_first = 0;
  if (size < sizeof(num_first)) return 0;
  std::memcpy(&num_first, data, sizeof(num_first));
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(sizeof(num_first));
  const size_t split = std::min<size_t>(num_first, bytes.size());
  std::vector<GgufFile> parts;
  for (const auto& part : {bytes.first(split), bytes.subspan(split)}) {
    auto file = GgufFile::Parse(part);
    if (!file) return 0;
    parts.push_back(*std::move(file));
  }
  const auto whole = GgufFile::Join(std::move(parts));
  if (!whole) return 0;
  unsigned sum = 0;
  for (const TensorInfo& tensor : whole->tensors().all()) {
    if (tensor.num_bytes > 0) sum += static_cast<unsigned>(tensor.data[tensor.num_bytes - 1]);
  }
  [[maybe_unused]] volatile unsigned touched = sum;
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {Seed(/*same_tensor=*/false), Seed(/*same_tensor=*/true), "m-00001-of-00002.gguf"};
}

}  // namespace kvick
