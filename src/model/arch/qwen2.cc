// Qwen 2 and 2.5. Queries, keys and values have biases. A window counts only where
// use_sliding_window says so, and from layer max_window_layers on.
// Source  arXiv:2407.10671, arXiv:2412.15115

#include <algorithm>

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

constexpr FieldName kUseWindow{.gguf = {}, .hf = "use_sliding_window"};
constexpr FieldName kMaxWindowLayers{.gguf = {}, .hf = "max_window_layers"};
constexpr int64_t kDefaultWindow = 4096, kDefaultMaxWindowLayers = 28;

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) layer.qkv_bias = true;
  return SetQwenWindows(fields, spec);
}

}  // namespace

// A GGUF file does not say that there is a window.
Status SetQwenWindows(const ConfigFields& fields, ModelSpec& spec) {
  if (fields.gguf() != nullptr) return {};
  KVICK_ASSIGN_OR_RETURN(const bool has_window, fields.BoolOr(kUseWindow, false));
  if (!has_window) return {};
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, kDefaultWindow));
  KVICK_ASSIGN_OR_RETURN(const int64_t num_full,
                         fields.IntOr(kMaxWindowLayers, {.min = 0}, kDefaultMaxWindowLayers));
  KVICK_RETURN_IF_ERROR(SetWindows(
      fields, window, [](int64_t) { return true; }, spec));
  if (fields.HasValue({.gguf = {}, .hf = "layer_types"})) return {};
  for (int64_t i = 0; i < std::min(num_full, spec.num_layers()); ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    layer.window = 0;
    layer.is_sliding = false;
  }
  return {};
}

constexpr Architecture kQwen2{
    .gguf_name = "qwen2",
    .hf_name = "qwen2",
    .hf_defaults = {.max_positions = 32768, .num_kv_heads = 32},
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
