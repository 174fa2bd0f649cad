// Takes blocks of quantized weights apart, decodes them, and stores what comes out: the first byte
// is the format.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fuzz.h"
#include "quant/weight_format.h"

namespace kvick {
namespace {

const WeightFormat& FormatFrom(uint8_t byte) {
  return AllWeightFormats()[byte % AllWeightFormats().size()];
}

// What EncodeWeights takes.
bool IsStorable(float value) { return std::isfinite(value) && std::fabs(value) <= 1e4f; }

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const WeightFormat& format = FormatFrom(data[0]);
  const int64_t num_blocks = static_cast<int64_t>(size - 1) / format.block_bytes;
  const int64_t num_elements = num_blocks * format.block_elements;
  const auto* blocks = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<float> values(static_cast<size_t>(num_elements));
  DecodeWeights(format.type, blocks, num_elements, values.data());
  std::ranges::replace_if(
      values, [](float value) { return !IsStorable(value); }, 0.0f);
  std::vector<std::byte> stored(static_cast<size_t>(num_blocks * format.block_bytes));
  EncodeWeights(format.type, values.data(), num_elements, stored.data());
  std::vector<float> again(values.size());
  DecodeWeights(format.type, stored.data(), num_elements, again.data());
  // What was stored is finite, whatever it was.
  if (!std::ranges::all_of(again, [](float value) { return std::isfinite(value); })) std::abort();
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  std::vector<float> ramp(256);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i) / 64 - 1.5f;
  std::vector<std::string> seeds;
  for (size_t i = 0; i < AllWeightFormats().size(); ++i) {
    const WeightFormat& format = AllWeightFormats()[i];
    std::string seed(1 + static_cast<size_t>(*WeightBytes(format.type, 256)), '\0');
    seed[0] = static_cast<char>(i);
    EncodeWeights(format.type, ramp.data(), 256, reinterpret_cast<std::byte*>(seed.data() + 1));
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace kvick
