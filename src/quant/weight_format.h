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
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
};

// One block of quantized weights, taken apart into sub-blocks that share a scale:
//
//   weight[i] = scale[i / sub] * code[i] + minimum[i / sub],   sub = sub_block_elements
//
// The product is exact in f32, so a weight is rounded at most once. Scales and minimums are
// products of numbers of the block, exact as well.
struct UnpackedBlock {
  static constexpr int kMaxElements = 256, kMaxSubBlocks = 16;

  float scales[kMaxSubBlocks];
  float minimums[kMaxSubBlocks];  // 0 where the format has none
  int8_t codes[kMaxElements];
};

// A row of weights is a sequence of blocks. Each block is decoded without the others.
struct WeightFormat {
  WeightType type;
  std::string_view name = {};  // in options and JSON: "q8_0"
  std::string_view gguf_name;  // in GGUF files and messages about them: "Q8_0"
  uint32_t gguf_type;          // the number of the type in a GGUF file
  int64_t block_elements = 1;  // 1: single numbers
  int64_t block_bytes = 0;
  std::optional<DType> dtype = std::nullopt;  // of single numbers; nullopt: quantized

  // Of quantized types alone:
  int64_t sub_block_elements = 0;
  bool has_minimums = false;
  void (*unpack)(const std::byte* block, UnpackedBlock& out) = nullptr;
  // Stores block_elements numbers of at most 1e4 in magnitude, each rounded to what the block's
  // scales allow. Simple, and less exact than encoders that search for the best scales: for tests
  // and random models.
  void (*pack)(const float* values, std::byte* block) = nullptr;

  bool is_quantized() const { return unpack != nullptr; }
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

// dst[i] = element i, for i in [0, n): the numbers that ggml's own decoder gives, bit for bit.
// `src` may have any alignment. REQUIRES: n is a multiple of block_elements.
void DecodeWeights(WeightType type, const std::byte* src, int64_t n, float* dst);

// The reverse: rounded to the nearest number of the type, or by `pack`.
// REQUIRES: n is a multiple of block_elements.
void EncodeWeights(WeightType type, const float* src, int64_t n, std::byte* dst);

// Whether kernels of that isa put weights of that type through matrix tiles.
bool UsesTiles(Isa isa, WeightType type);

}  // namespace kvick

#endif  // KVICK_QUANT_WEIGHT_FORMAT_H_
