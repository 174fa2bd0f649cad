// OLMo 2: branches end with a norm and do not begin with one; queries and keys are normalized over
// the whole width.
// Source  arXiv:2501.00656

#include "base/check.h"
#include "model/arch/architecture.h"

namespace kvick {
namespace {

Status Describe(const ConfigFields&, ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) {
    layer.norm_before = false;
    layer.norm_after = true;
    layer.qk_norm = QkNorm::kWidth;
  }
  return {};
}

}  // namespace

constexpr Architecture kOlmo2{
    .gguf_name = "olmo2",
    .hf_name = "olmo2",
    .hf_defaults = {.max_positions = 2048, .rms_norm_eps = 1e-5},
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfPostNormTensors,
    .describe = Describe,
};

}  // namespace kvick
