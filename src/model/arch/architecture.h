#ifndef KVICK_MODEL_ARCH_ARCHITECTURE_H_
#define KVICK_MODEL_ARCH_ARCHITECTURE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvick/status.h"
#include "model/arch/config_fields.h"
#include "model/model_spec.h"
#include "model/tensor_names.h"

namespace kvick {

// What a missing key of config.json means: the defaults of transformers.
struct HfDefaults {
  int64_t max_positions = 2048;
  int64_t num_kv_heads = 0;  // 0: as many as query heads, which is also what null means
  int64_t head_dim = 0;      // 0: hidden_size / num_heads
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool tie_word_embeddings = false;
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
};

// All that is known of an architecture. Its file, NAME.cc, holds one of these.
struct Architecture {
  std::string_view gguf_name;  // general.architecture; empty: GGUF has no such architecture
  std::string_view hf_name;    // model_type of config.json
  HfDefaults hf_defaults;
  RopePairs gguf_pairs = RopePairs::kHalves;  // interleaved: the converter reorders rows of q and k
  bool has_partial_rotation = false;          // only the first part of a head may rotate
  const TensorNames* gguf_tensors = nullptr;
  const TensorNames* hf_tensors = nullptr;
  // Changes a spec from that of a Llama: the sizes, the layers and one rope are there. nullptr: it
  // is a Llama.
  Status (*describe)(const ConfigFields& fields, ModelSpec& spec) = nullptr;
};

// All architectures that kvick runs.
std::span<const Architecture* const> Architectures();

// nullptr where there is none.
const Architecture* FindGgufArchitecture(std::string_view gguf_name);
const Architecture* FindHfArchitecture(std::string_view model_type);

// For messages: "a", "b" or "c".
std::string ArchitectureNames(std::string_view Architecture::*name);

extern const Architecture kGemma2, kGemma3, kGranite, kLlama, kMistral, kOlmo2, kPhi3, kQwen2,
    kQwen3, kSmolLm3;

// Of GGUF files, of folders whose second norm of a layer begins the MLP, and of folders where it
// ends attention.
extern const TensorNames kGgufTensors, kHfTensors, kHfPostNormTensors;

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_ARCHITECTURE_H_
