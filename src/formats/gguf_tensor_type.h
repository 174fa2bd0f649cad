#ifndef KVICK_FORMATS_GGUF_TENSOR_TYPE_H_
#define KVICK_FORMATS_GGUF_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "kvick/tensor.h"

namespace kvick {

// How a ggml tensor type is stored: rows of blocks of `block_elements` in `block_bytes`.
struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  int64_t block_elements;
  int64_t block_bytes;
  std::optional<DType> dtype;  // nullopt: kvick can list such a tensor, but not compute with it
};

// nullptr where ggml has (or no longer has) no such type.
const GgufTensorType* FindGgufTensorType(uint32_t id);

}  // namespace kvick

#endif  // KVICK_FORMATS_GGUF_TENSOR_TYPE_H_
