// Phi-3, 3.5 and 4: q, k and v are one matrix, and so are gate and up; every layer has the window,
// if there is one; a part of a head may rotate, and frequencies may depend on the length
// (longrope). Source  arXiv:2404.14219

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  spec.fused_qkv = spec.fused_gate_up = true;
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, 0));
  return SetWindows(
      fields, window, [](int64_t) { return true; }, spec);
}

}  // namespace

constexpr Architecture kPhi3{
    .gguf_name = "phi3",
    .hf_name = "phi3",
    .hf_defaults = {.max_positions = 4096, .rms_norm_eps = 1e-5},
    .has_partial_rotation = true,
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
