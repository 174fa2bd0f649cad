#include "quant/weight_format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "quant/formats.h"

namespace kvick {
namespace {

WeightFormat Plain(WeightType type, DType dtype, std::string_view gguf_name, uint32_t gguf_type) {
  WeightFormat format{.type = type, .gguf_name = gguf_name, .gguf_type = gguf_type};
  format.name = DTypeName(dtype);
  format.block_bytes = DTypeBytes(dtype);
  format.dtype = dtype;
  return format;
}

// Not a constant of the compiler's, as the formats are those of other sources.
const std::array<WeightFormat, 15>& Table() {
  static const std::array<WeightFormat, 15> table{
      Plain(WeightType::kF32, DType::kF32, "F32", 0),
      Plain(WeightType::kF16, DType::kF16, "F16", 1),
      Plain(WeightType::kBF16, DType::kBF16, "BF16", 30),
      kQ8_0Format,
      kQ4_0Format,
      kQ4_1Format,
      kQ5_0Format,
      kQ5_1Format,
      kQ2_KFormat,
      kQ3_KFormat,
      kQ4_KFormat,
      kQ5_KFormat,
      kQ6_KFormat,
      kIQ4_NLFormat,
      kIQ4_XSFormat,
  };
  return table;
}

const WeightFormat* FindIf(auto is_it) {
  const auto* const place = std::ranges::find_if(Table(), is_it);
  return place == Table().end() ? nullptr : place;
}

}  // namespace

std::span<const WeightFormat> AllWeightFormats() { return Table(); }

const WeightFormat& FormatOf(WeightType type) {
  const auto idx = static_cast<size_t>(type);
  KVICK_CHECK(idx < Table().size() && Table()[idx].type == type);
  return Table()[idx];
}

const WeightFormat* FindWeightFormat(std::string_view name) {
  return FindIf([name](const WeightFormat& format) { return format.name == name; });
}

const WeightFormat* FindGgufWeightFormat(uint32_t gguf_type) {
  return FindIf([gguf_type](const WeightFormat& format) { return format.gguf_type == gguf_type; });
}

WeightType WeightTypeOf(DType dtype) {
  const WeightFormat* format =
      FindIf([dtype](const WeightFormat& candidate) { return candidate.dtype == dtype; });
  KVICK_CHECK(format != nullptr);
  return format->type;
}

std::optional<int64_t> WeightBytes(WeightType type, int64_t num_elements) {
  const WeightFormat& format = FormatOf(type);
  if (num_elements % format.block_elements != 0) return std::nullopt;
  return CheckedProduct({num_elements / format.block_elements, format.block_bytes});
}

void DecodeWeights(WeightType type, const std::byte* src, int64_t n, float* dst) {
  const WeightFormat& format = FormatOf(type);
  KVICK_CHECK(n % format.block_elements == 0);
  if (format.dtype) return ConvertToF32(*format.dtype, src, n, dst);
  UnpackedBlock block;
  for (int64_t begin = 0; begin < n; begin += format.block_elements, src += format.block_bytes) {
    format.unpack(src, block);
    for (int64_t i = 0; i < format.block_elements; ++i) {
      const int64_t sub = i / format.sub_block_elements;
      const float product = block.scales[sub] * static_cast<float>(block.codes[i]);
      dst[begin + i] = format.has_minimums ? product + block.minimums[sub] : product;
    }
  }
}

void EncodeWeights(WeightType type, const float* src, int64_t n, std::byte* dst) {
  const WeightFormat& format = FormatOf(type);
  KVICK_CHECK(n % format.block_elements == 0);
  if (format.dtype) return ConvertFromF32(*format.dtype, src, n, dst);
  for (int64_t begin = 0; begin < n; begin += format.block_elements, dst += format.block_bytes) {
    format.pack(src + begin, dst);
  }
}

bool UsesTiles(Isa isa, WeightType type) {
  return type == WeightType::kBF16 && UsesTiles(isa, DType::kBF16);
}

}  // namespace kvick
