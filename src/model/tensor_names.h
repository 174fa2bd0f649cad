#ifndef KVICK_MODEL_TENSOR_NAMES_H_
#define KVICK_MODEL_TENSOR_NAMES_H_

#include <string_view>

namespace kvick {

// The names of a model's tensors in a format, without ".weight" and ".bias". Those of layer N
// follow layer_prefix and "N.". A name is empty where no model of the architecture has such a
// tensor.
struct TensorNames {
  std::string_view embedding, final_norm, output, layer_prefix;

  std::string_view attention_norm, attention_post_norm;
  std::string_view q, k, v, o;
  std::string_view qkv;  // q, k and v in one
  std::string_view q_norm, k_norm;

  std::string_view ffn_norm, ffn_post_norm;
  std::string_view gate, up, down;
  std::string_view gate_up;  // gate and up in one
};

}  // namespace kvick

#endif  // KVICK_MODEL_TENSOR_NAMES_H_
