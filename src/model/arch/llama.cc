// Llama 1 to 3.3, and what copies it: Mistral in GGUF files, SmolLM 1 and 2, Yi, DeepSeek LLM.
// Source  arXiv:2302.13971; grouped heads, arXiv:2305.13245; SwiGLU, arXiv:2002.05202

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

// config.json of transformers has no window here; a GGUF file may, as that of a Mistral.
Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  if (fields.gguf() == nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, 0));
  for (LayerSpec& layer : spec.layers) layer.window = window;
  return {};
}

}  // namespace

constexpr Architecture kLlama{
    .gguf_name = "llama",
    .hf_name = "llama",
    .gguf_pairs = RopePairs::kInterleaved,
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
