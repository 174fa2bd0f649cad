#include "formats/gguf_tensor_type.h"

#include <algorithm>
#include <array>

namespace kvick {
namespace {

// Those that kvick lists but does not read. As in ggml.h and ggml-common.h. Missing numbers were
// removed there: no file may hold them.
constexpr std::array kListedTypes{
    GgufTensorType{9, "Q8_1", 32, 36},      GgufTensorType{15, "Q8_K", 256, 292},
    GgufTensorType{16, "IQ2_XXS", 256, 66}, GgufTensorType{17, "IQ2_XS", 256, 74},
    GgufTensorType{18, "IQ3_XXS", 256, 98}, GgufTensorType{19, "IQ1_S", 256, 50},
    GgufTensorType{21, "IQ3_S", 256, 110},  GgufTensorType{22, "IQ2_S", 256, 82},
    GgufTensorType{24, "I8", 1, 1},         GgufTensorType{25, "I16", 1, 2},
    GgufTensorType{26, "I32", 1, 4},        GgufTensorType{27, "I64", 1, 8},
    GgufTensorType{28, "F64", 1, 8},        GgufTensorType{29, "IQ1_M", 256, 56},
    GgufTensorType{34, "TQ1_0", 256, 54},   GgufTensorType{35, "TQ2_0", 256, 66},
    GgufTensorType{39, "MXFP4", 32, 17},    GgufTensorType{40, "NVFP4", 64, 36},
    GgufTensorType{41, "Q1_0", 128, 18},    GgufTensorType{42, "Q2_0", 64, 18},
};

}  // namespace

std::optional<GgufTensorType> FindGgufTensorType(uint32_t id) {
  if (const WeightFormat* format = FindGgufWeightFormat(id)) {
    return GgufTensorType{id, format->gguf_name, format->block_elements, format->block_bytes,
                          format};
  }
  const auto* const place = std::ranges::find_if(
      kListedTypes, [id](const GgufTensorType& type) { return type.id == id; });
  return place == kListedTypes.end() ? std::nullopt : std::optional(*place);
}

}  // namespace kvick
