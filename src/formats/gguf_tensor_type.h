#ifndef KVICK_FORMATS_GGUF_TENSOR_TYPE_H_
#define KVICK_FORMATS_GGUF_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "quant/weight_format.h"

namespace kvick {

// How a ggml tensor type is stored: rows of blocks of `block_elements` in `block_bytes`.
struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
  const WeightFormat* format = nullptr;  // nullptr: kvick lists such a tensor, but cannot read it
};

// nullopt where ggml has (or no longer has) no such type.
std::optional<GgufTensorType> FindGgufTensorType(uint32_t id);

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_TENSOR_TYPE_H_
