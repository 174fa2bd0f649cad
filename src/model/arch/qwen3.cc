// Qwen 3, dense: each head of queries and keys is normalized before it is rotated.
// Source  arXiv:2505.09388

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) layer.qk_norm = QkNorm::kHead;
  return SetQwenWindows(fields, spec);
}

}  // namespace

constexpr Architecture kQwen3{
    .gguf_name = "qwen3",
    .hf_name = "qwen3",
    .hf_defaults = {.max_positions = 32768, .num_kv_heads = 32, .head_dim = 128},
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
