// Parses a GGUF file, reads all of it, and makes a model of it.

#include <span>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/gguf_value.h"
#include "fuzz.h"
#include "model/arch/read_spec.h"
#include "model/tiny_llama_testing.h"
#include "model/weights.h"

namespace kvick {
namespace {

// Reads the first and last byte of every tensor: a sanitizer reports a range outside of the file.
unsigned Touch(const TensorTable& tensors) {
  unsigned sum = 0;
  for (const TensorInfo& tensor : tensors.all()) {
    if (tensor.num_bytes == 0) continue;
    sum += static_cast<unsigned>(tensor.data[0]);
    sum += static_cast<unsigned>(tensor.data[tensor.num_bytes - 1]);
  }
  return sum;
}

void ReadEverything(const GgufFile& file) {
  [[maybe_unused]] volatile unsigned sum = Touch(file.tensors());
  for (const GgufEntry& entry : file.metadata()) {
    GgufValueText(entry.value, 4);
    (void)GgufToString(entry.value, "value");
    (void)GgufToInt(entry.value, "value");
    (void)GgufToFloat(entry.value, "value");
    (void)GgufToBool(entry.value, "value");
    (void)GgufToStrings(entry.value, "value");
    (void)GgufToInts(entry.value, "value");
    (void)GgufToFloats(entry.value, "value");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = GgufFile::Parse(std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  ReadEverything(*file);
  const auto config = ModelSpecFromGguf(*file);
  if (!config) return 0;
  for (const RopeSpec& rope : config->ropes) RopeInverseFrequencies(rope);
  (void)BindWeights({"fuzz", file->tensors()}, *config);
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  testing::GgufSpec types;
  const std::string inner = testing::PackedArray(GgufType::kI8, 2, "ab");
  types.Set("nested", GgufType::kArray, testing::PackedArray(GgufType::kArray, 2, inner + inner));
  types.Set("f64", GgufType::kF64, testing::Packed(1.0));
  types.Set("bool", GgufType::kBool, "\x01");
  types.tensors.push_back({.name = "q", .dims = {32, 2}, .type = 8, .data = std::string(68, 'q')});
  types.tensors.push_back({.name = "empty", .dims = {32, 0}});
  return {testing::TinyGguf().Build(), types.Build()};
}

}  // namespace kvick
