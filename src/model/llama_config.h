#ifndef KVICK_MODEL_LLAMA_CONFIG_H_
#define KVICK_MODEL_LLAMA_CONFIG_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "kvick/status.h"
#include "ops/rope.h"

namespace kvick {

// How queries and keys are rotated. Angle of pair i at position p: p * inverse_frequency[i].
struct RopeConfig {
  enum class Scaling {
    kNone,
    kLinear,  ///< frequencies / factor
    kLlama3,  ///< long wavelengths / factor, short ones kept, between them a blend
  };

  RopePairs pairs = RopePairs::kHalves;  // interleaved: GGUF, whose q and k rows are reordered
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;                 // linear, llama3
  double low_freq_factor = 1.0;        // llama3
  double high_freq_factor = 4.0;       // llama3
  int64_t original_max_positions = 0;  // llama3: tokens
  std::vector<float> freq_factors;     // [D/2], divides the frequencies; empty: none (GGUF)
};

// The sizes and constants of a Llama. As the functions below return it, it is consistent:
// every count > 0 and within the limits of llama_config_checks.h, num_heads % num_kv_heads == 0,
// head_dim even and 2 to 256, token ids within the vocabulary, no float NaN or infinite. Products
// of counts that a cache needs fit 63 bits.
struct LlamaConfig {
  std::string architecture;  // "llama", "mistral"
  std::string name;          // as the file has it: any bytes, or none

  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;       // need not be hidden_size / num_heads
  int64_t vocab_size = 0;     // rows of the embedding, width of the logits
  int64_t max_positions = 0;  // tokens
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // biases that the file must hold; others are used where it has them
  bool mlp_bias = false;

  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;  // any of them ends a completion
};

// From a config.json of model_type llama, or mistral without a window within its positions. A
// missing key has the default of transformers. `source` names the file in messages.
// Errors: corrupt: a field missing, of another type, out of range, or at odds with another;
//         unsupported: another architecture, rope scaling, activation, a sliding window or a
//         quantized checkpoint.
Result<LlamaConfig> LlamaConfigFromHf(const nlohmann::json& config,
                                      std::string_view source = "config.json");

// The end-of-sequence tokens of a generation_config.json; nullopt where it names none. An id that
// is not in the vocabulary is left out: such a token never comes.
// Errors: corrupt: a value that is no token id.
Result<std::optional<std::vector<int32_t>>> EosIdsFromHf(
    const nlohmann::json& generation_config, int64_t vocab_size,
    std::string_view source = "generation_config.json");

// From a GGUF of architecture llama, with or without tensors. The size of the
// vocabulary is the length of the token list. llama.vocab_size and the rows of the embedding must
// agree with it where they are present: llama.cpp pads the list when it converts a padded
// embedding, so that a shorter list is a damaged file.
// Errors: as LlamaConfigFromHf; unsupported: one file of a split model.
Result<LlamaConfig> LlamaConfigFromGguf(const GgufFile& file);

// [head_dim / 2], radians a token: theta^(-2i / head_dim), scaled, divided by freq_factors.
// Source  linear: arXiv:2306.15595; llama3: transformers' modeling_rope_utils
std::vector<double> RopeInverseFrequencies(const LlamaConfig& config);

}  // namespace kvick

#endif  // KVICK_MODEL_LLAMA_CONFIG_H_
