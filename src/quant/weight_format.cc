#include "quant/weight_format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "quant/q8_0.h"

namespace kvick {
namespace {

template <DType kDType>
void DecodePlain(const std::byte* src, int64_t n, float* dst) {
  ConvertToF32(kDType, src, n, dst);
}

template <DType kDType>
void EncodePlain(const float* src, int64_t n, std::byte* dst) {
  ConvertFromF32(kDType, src, n, dst);
}

template <DType kDType>
constexpr WeightFormat Plain(WeightType type, std::string_view name, std::string_view gguf_name,
                             uint32_t gguf_type) {
  return {type,
          name,
          gguf_name,
          gguf_type,
          1,
          kDType == DType::kF32 ? 4 : 2,
          kDType,
          DecodePlain<kDType>,
          EncodePlain<kDType>};
}

constexpr std::array kFormats{
    Plain<DType::kF32>(WeightType::kF32, "f32", "F32", 0),
    Plain<DType::kF16>(WeightType::kF16, "f16", "F16", 1),
    Plain<DType::kBF16>(WeightType::kBF16, "bf16", "BF16", 30),
    kQ8_0Format,
};

const WeightFormat* FindIf(auto is_it) {
  const auto* const place = std::ranges::find_if(kFormats, is_it);
  return place == kFormats.end() ? nullptr : place;
}

}  // namespace

std::span<const WeightFormat> AllWeightFormats() { return kFormats; }

const WeightFormat& FormatOf(WeightType type) {
  const auto idx = static_cast<size_t>(type);
  KVICK_CHECK(idx < kFormats.size() && kFormats[idx].type == type);
  return kFormats[idx];
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
  format.decode(src, n, dst);
}

bool UsesTiles(Isa isa, WeightType type) {
  return type == WeightType::kBF16 && UsesTiles(isa, DType::kBF16);
}

}  // namespace kvick
