#ifndef KVICK_QUANT_WEIGHT_FORMAT_H_
#define KVICK_QUANT_WEIGHT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/isa.h"
#include "kvick/tensor.h"

namespace kvick {

// How the elements of a weight matrix are stored. The numbers are part of a model's fingerprint:
// new types are added at the end.
enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
};

// A row of weights is a sequence of blocks. Each block is decoded without the others.
struct WeightFormat {
  WeightType type;
  std::string_view name;       // in options and JSON: "q8_0"
  std::string_view gguf_name;  // in GGUF files and messages about them: "Q8_0"
  uint32_t gguf_type;          // the number of the type in a GGUF file
  int64_t block_elements;
  int64_t block_bytes;
  std::optional<DType> dtype;  // nullopt: quantized

  // dst[i] = element i, for i in [0, n): the numbers that ggml's own decoder gives, bit for bit.
  // `src` may have any alignment. REQUIRES: n is a multiple of block_elements.
  void (*decode)(const std::byte* src, int64_t n, float* dst);
  // Rounds each element to nearest, with simply chosen scales: for tests and random models. The
  // numbers are finite and at most 1e4 in magnitude. REQUIRES: n is a multiple of block_elements.
  void (*encode)(const float* src, int64_t n, std::byte* dst);
};

// Every format, in the order of WeightType.
std::span<const WeightFormat> AllWeightFormats();

const WeightFormat& FormatOf(WeightType type);
// nullptr where there is none.
const WeightFormat* FindWeightFormat(std::string_view name);
const WeightFormat* FindGgufWeightFormat(uint32_t gguf_type);
WeightType WeightTypeOf(DType dtype);

// Bytes of `num_elements` consecutive elements, or nullopt where the format's blocks do not divide
// the number or the product overflows.
std::optional<int64_t> WeightBytes(WeightType type, int64_t num_elements);

// FormatOf(type).decode.
void DecodeWeights(WeightType type, const std::byte* src, int64_t n, float* dst);

// Whether kernels of that isa put weights of that type through matrix tiles.
bool UsesTiles(Isa isa, WeightType type);

}  // namespace kvick

#endif  // KVICK_QUANT_WEIGHT_FORMAT_H_
