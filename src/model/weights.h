#ifndef KVICK_MODEL_WEIGHTS_H_
#define KVICK_MODEL_WEIGHTS_H_

#include <string>
#include <vector>

#include "formats/tensor_info.h"
#include "kvick/status.h"
#include "model/model_spec.h"
#include "ops/matrix_view.h"

namespace kvick {

// One layer. Matrices are [outputs, inputs] in the mapped file; E hidden_size, I intermediate_size,
// H num_heads, K num_kv_heads, D head_dim. Parts of a fused tensor are views of its rows. A norm or
// a bias is empty where the model has none; norms are as they multiply, the 1 of 1 + w added.
struct LayerWeights {
  std::vector<float> attention_norm;       // [E]
  MatrixView q;                            // [H * D, E]
  MatrixView k;                            // [K * D, E]
  MatrixView v;                            // [K * D, E]
  MatrixView o;                            // [E, H * D]
  std::vector<float> q_bias;               // [H * D]
  std::vector<float> k_bias;               // [K * D]
  std::vector<float> v_bias;               // [K * D]
  std::vector<float> o_bias;               // [E]
  std::vector<float> q_norm;               // [D] or [H * D]
  std::vector<float> k_norm;               // [D] or [K * D]
  std::vector<float> attention_post_norm;  // [E]

  std::vector<float> ffn_norm;       // [E]
  MatrixView gate;                   // [I, E]
  MatrixView up;                     // [I, E]
  MatrixView down;                   // [E, I]
  std::vector<float> gate_bias;      // [I]
  std::vector<float> up_bias;        // [I]
  std::vector<float> down_bias;      // [E]
  std::vector<float> ffn_post_norm;  // [E]

  static constexpr MatrixView LayerWeights::*kMatrices[] = {
      &LayerWeights::q,    &LayerWeights::k,  &LayerWeights::v,   &LayerWeights::o,
      &LayerWeights::gate, &LayerWeights::up, &LayerWeights::down};
  static constexpr std::vector<float> LayerWeights::*kVectors[] = {
      &LayerWeights::attention_norm, &LayerWeights::ffn_norm, &LayerWeights::q_bias,
      &LayerWeights::k_bias,         &LayerWeights::v_bias,   &LayerWeights::o_bias,
      &LayerWeights::gate_bias,      &LayerWeights::up_bias,  &LayerWeights::down_bias,
      &LayerWeights::q_norm,         &LayerWeights::k_norm,   &LayerWeights::attention_post_norm,
      &LayerWeights::ffn_post_norm};
};

struct ModelWeights {
  MatrixView embedding;  // [V, E]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [E]
  MatrixView output;              // [V, E]; the embedding itself where none is stored
};

struct WeightSource {
  std::string name;  // starts the messages
  const TensorTable& tensors;
};

// Finds every weight of the model, and checks its shape and type. The views point into the file;
// norms and biases alone are copied, as f32. A stored output is used also where the config ties it
// to the embedding; a tied model may store either of the two.
// Errors: corrupt: a tensor missing or of another shape;  unsupported: a type that kvick does not
// compute with, a tensor that is no part of the model, or more than 256 MiB of norms and biases.
Result<ModelWeights> BindWeights(const WeightSource& source, const ModelSpec& spec);

}  // namespace kvick

#endif  // KVICK_MODEL_WEIGHTS_H_
