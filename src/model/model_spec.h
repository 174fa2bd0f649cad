#ifndef KVICK_MODEL_MODEL_SPEC_H_
#define KVICK_MODEL_MODEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/tensor_names.h"
#include "ops/glu.h"
#include "ops/rope.h"

namespace kvick {

// How queries and keys are rotated. Angle of pair i at position p: p * inverse_frequency[i]. The
// frequencies of a sequence may depend on how long the whole sequence is (kLongRope).
struct RopeSpec {
  enum class Scaling {
    kNone,
    kLinear,    ///< frequencies / factor
    kLlama3,    ///< long wavelengths / factor, short ones kept, between them a blend
    kYarn,      ///< the same with a ramp over pairs
    kLongRope,  ///< divided by freq_factors, of long sequences by long_freq_factors
  };

  RopePairs pairs = RopePairs::kHalves;  // interleaved: GGUF, whose q and k rows are reordered
  double theta = 10000.0;
  int64_t num_rotated = 0;  // R: the first elements of a head, even, 2 to head_dim
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;                    // linear, llama3, yarn
  double low_freq_factor = 1.0;           // llama3
  double high_freq_factor = 4.0;          // llama3
  double beta_fast = 32.0;                // yarn: rotations in the original context that are kept
  double beta_slow = 1.0;                 // yarn: and those that are divided
  bool truncates_ramp = true;             // yarn: the ramp begins and ends at a pair
  int64_t original_max_positions = 0;     // llama3, yarn, longrope: tokens
  double magnitude = 1.0;                 // on cosines and sines
  std::vector<double> freq_factors;       // [R/2], divide the frequencies; empty: none
  std::vector<double> long_freq_factors;  // [R/2], longrope: of sequences over the original length
};

// [R/2], radians a token, for a sequence of num_tokens in all: theta^(-2i / R), scaled, divided by
// the factors.
// Source  linear: arXiv:2306.15595; yarn: arXiv:2309.00071; longrope: arXiv:2402.13753;
//         llama3: transformers' modeling_rope_utils
std::vector<double> RopeInverseFrequencies(const RopeSpec& rope, int64_t num_tokens = 1);

// Where queries and keys are normalized before they are rotated.
enum class QkNorm {
  kNone,
  kHead,   ///< each head, with one weight [D] for all
  kWidth,  ///< all heads as one row, with a weight [H * D] and [K * D]
};

// What one layer does.
//
//   y = attention(before(x));  x += residual_scale * after(y)
//   y = mlp(before(x));        x += residual_scale * after(y)
struct LayerSpec {
  static constexpr int kNoRope = -1;

  bool norm_before = true;  // each branch begins with a norm
  bool norm_after = false;  // each branch ends with a norm
  QkNorm qk_norm = QkNorm::kNone;
  int rope = 0;             // index into ModelSpec::ropes, or kNoRope
  int64_t window = 0;       // tokens that a token attends to, itself included; 0: all
  bool is_sliding = false;  // a layer of the kind that has windows, be this one as long as all
  Activation activation = Activation::kSilu;
  // Biases that the file must hold; others are used where it has them.
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
};

// What is added to a norm's weight when it is read. GGUF files hold the sum.
enum class NormWeights {
  kPlain,
  kPlusOne,  ///< 1 + weight
};

// All that a forward pass does, as numbers: no code but that which reads a file knows an
// architecture by name. As ReadModelSpec returns it, it is consistent: every count > 0 and within
// the limits of arch/spec_ranges.h, num_heads % num_kv_heads == 0, head_dim even and 2 to 256,
// token ids within the vocabulary, no float NaN or infinite. Products of counts that a cache needs
// fit 63 bits.
struct ModelSpec {
  std::string architecture;  // "llama", "mistral": a name of arch/architecture.h
  std::string name;          // as the file has it: any bytes, or none

  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;       // need not be hidden_size / num_heads
  int64_t vocab_size = 0;     // rows of the embedding, width of the logits
  int64_t max_positions = 0;  // tokens

  double rms_norm_eps = 1e-6;
  NormWeights norm_weights = NormWeights::kPlain;
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;

  double embedding_scale = 1.0;
  double residual_scale = 1.0;   // of what a branch adds
  double attention_scale = 0.0;  // of the scores; 0: 1 / sqrt(head_dim)
  double score_soft_cap = 0.0;   // cap * tanh(score / cap), before the mask; 0: none
  double logits_scale = 1.0;
  double logits_soft_cap = 0.0;  // 0: none

  TensorNames tensor_names;
  bool tie_word_embeddings = false;
  bool fused_qkv = false;      // q, k and v are one tensor, in this order
  bool fused_gate_up = false;  // gate and up are one tensor, in this order

  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;  // any of them ends a completion

  int64_t num_layers() const { return static_cast<int64_t>(layers.size()); }
  // The longest sequence with the keys of short ones, where longer ones have others (longrope):
  // every key of a sequence that grows past it must be computed again. 0: there is no such length.
  int64_t RopeSwitchLength() const;
  // The window of each layer; empty where no layer has one.
  std::vector<int64_t> Windows() const;
};

}  // namespace kvick

#endif  // KVICK_MODEL_MODEL_SPEC_H_
