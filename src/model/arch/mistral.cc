// Mistral 7B, v0.2 and v0.3, Nemo. A GGUF file of one says that it is a Llama.
// Source  arXiv:2310.06825

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

constexpr int64_t kDefaultWindow = 4096;

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, kDefaultWindow));
  for (LayerSpec& layer : spec.layers) layer.window = window;
  return {};
}

}  // namespace

constexpr Architecture kMistral{
    .gguf_name = {},
    .hf_name = "mistral",
    .hf_defaults = {.max_positions = 131072, .num_kv_heads = 8},
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
