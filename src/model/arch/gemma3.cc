// Gemma 3, text: each head of queries and keys is normalized; of six layers five have a window and
// a rope of their own. Source  arXiv:2503.19786

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/gemma.h"
#include "model/arch/rope_fields.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

constexpr FieldName kPattern{"attention.sliding_window_pattern", "sliding_window_pattern"};
constexpr int64_t kDefaultWindow = 4096, kDefaultPattern = 6, kLayersOf27B = 62;

// One layer of each `pattern` sees all.
Status SetPattern(const ConfigFields& fields, int64_t window, ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(const int64_t pattern,
                         fields.IntOr(kPattern, {.min = 1}, kDefaultPattern));
  KVICK_RETURN_IF_ERROR(SetWindows(
      fields, window, [](int64_t) { return true; }, spec));
  if (fields.HasValue({.gguf = {}, .hf = "layer_types"})) return {};
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % pattern != 0) continue;
    spec.layers[i].window = 0;
    spec.layers[i].is_sliding = false;
  }
  return {};
}

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  KVICK_RETURN_IF_ERROR(DescribeGemma(fields, kLayersOf27B, spec));
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, kDefaultWindow));
  KVICK_RETURN_IF_ERROR(SetPattern(fields, window, spec));
  for (const RopeLayers kind : {RopeLayers::kFull, RopeLayers::kSliding}) {
    KVICK_ASSIGN_OR_RETURN(RopeSpec rope, ReadRope(fields, kGemma3, spec, kind));
    spec.ropes.push_back(std::move(rope));
  }
  for (LayerSpec& layer : spec.layers) {
    layer.qk_norm = QkNorm::kHead;
    layer.rope = layer.is_sliding ? 1 : 0;
  }
  return {};
}

}  // namespace

constexpr Architecture kGemma3{
    .gguf_name = "gemma3",
    .hf_name = "gemma3_text",
    .hf_defaults = {.max_positions = 131072,
                    .num_kv_heads = 4,
                    .head_dim = 256,
                    .rope_theta = 1000000.0,
                    .tie_word_embeddings = true,
                    .activation_key = "hidden_activation",
                    .activation = "gelu_pytorch_tanh"},
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfPostNormTensors,
    .describe = Describe,
};

}  // namespace kvick
