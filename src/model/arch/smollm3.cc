// SmolLM3: a Llama in which some layers, by default every fourth, do not rotate queries and keys.
// Source  transformers' modeling_smollm3.py; arXiv:2501.18795

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

constexpr FieldName kRotates{.gguf = {}, .hf = "no_rope_layers"};  // 1: it does
constexpr FieldName kInterval{.gguf = {}, .hf = "no_rope_layer_interval"};
constexpr int64_t kDefaultInterval = 4;

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  int64_t interval = kDefaultInterval;
  if (fields.gguf() == nullptr) {
    KVICK_ASSIGN_OR_RETURN(interval, fields.IntOr(kInterval, {.min = 1}, kDefaultInterval));
  }
  KVICK_ASSIGN_OR_RETURN(const auto rotates, fields.IntsOrNone(kRotates, {.min = 0, .max = 1}));
  if (!rotates.empty() && rotates.size() != spec.layers.size()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {} (a number for each layer), got {}",
                fields.Label(kRotates), spec.layers.size(), rotates.size());
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool by_interval = (static_cast<int64_t>(i) + 1) % interval != 0;
    const bool does_rotate = rotates.empty() ? by_interval : rotates[i] == 1;
    if (!does_rotate) spec.layers[i].rope = LayerSpec::kNoRope;
  }
  return SetQwenWindows(fields, spec);
}

}  // namespace

constexpr Architecture kSmolLm3{
    .gguf_name = "smollm3",
    .hf_name = "smollm3",
    .hf_defaults = {.max_positions = 32768,
                    .num_kv_heads = 4,
                    .rope_theta = 2000000.0,
                    .tie_word_embeddings = true},
    .gguf_pairs = RopePairs::kInterleaved,
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfTensors,
    .describe = Describe,
};

}  // namespace kvick
