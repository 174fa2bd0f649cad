#ifndef KVICK_MODEL_WEIGHTS_H_
#define KVICK_MODEL_WEIGHTS_H_

#include <string>
#include <vector>

#include "formats/tensor_info.h"
#include "kvick/status.h"
#include "model/llama_config.h"
#include "ops/matrix_view.h"

namespace kvick {

// One layer. Matrices are [outputs, inputs] in the mapped file; E hidden_size, I intermediate_size,
// H num_heads, K num_kv_heads, D head_dim. A bias is empty where the model has none.
struct LayerWeights {
  std::vector<float> attention_norm;  // [E]
  MatrixView q;                       // [H * D, E]
  MatrixView k;                       // [K * D, E]
  MatrixView v;                       // [K * D, E]
  MatrixView o;                       // [E, H * D]
  std::vector<float> q_bias;          // [H * D]
  std::vector<float> k_bias;          // [K * D]
  std::vector<float> v_bias;          // [K * D]
  std::vector<float> o_bias;          // [E]

  std::vector<float> ffn_norm;   // [E]
  MatrixView gate;               // [I, E]
  MatrixView up;                 // [I, E]
  MatrixView down;               // [E, I]
  std::vector<float> gate_bias;  // [I]
  std::vector<float> up_bias;    // [I]
  std::vector<float> down_bias;  // [E]
};

struct ModelWeights {
  MatrixView embedding;  // [V, E]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [E]
  MatrixView output;              // [V, E]; the embedding itself where none is stored
};

// Which naming scheme the tensors follow.
enum class WeightNames {
  kGguf,         ///< blk.0.attn_q.weight
  kHuggingFace,  ///< model.layers.0.self_attn.q_proj.weight
};

struct WeightSource {
  std::string name;  // starts the messages
  WeightNames names;
  const TensorTable& tensors;
};

// Finds every weight of the model, and checks its shape and type. The views point into the file;
// norms and biases alone are copied, as f32. A stored output is used also where the config ties it
// to the embedding; a tied model may store either of the two.
// Errors: corrupt: a tensor missing or of another shape;  unsupported: a type that kvick does not
// compute with, or more than 256 MiB of norms and biases.
Result<ModelWeights> BindWeights(const WeightSource& source, const LlamaConfig& config);

}  // namespace kvick

#endif  // KVICK_MODEL_WEIGHTS_H_
