// Gemma 2: every other layer has a window, the first one included; scores and logits are
// soft-capped. Source  arXiv:2408.00118

#include "base/check.h"
#include "model/arch/architecture.h"
#include "model/arch/gemma.h"
#include "model/arch/spec_ranges.h"
#include "model/arch/windows.h"

namespace kvick {
namespace {

constexpr FieldName kScoreCap{"attn_logit_softcapping", "attn_logit_softcapping"};
constexpr FieldName kLogitCap{"final_logit_softcapping", "final_logit_softcapping"};
constexpr int64_t kDefaultWindow = 4096, kLayersOf27B = 46;

// null is none, a missing key the default.
Result<double> ReadCap(const ConfigFields& fields, FieldName name, double fallback) {
  const bool is_null = fields.Has(name) && !fields.HasValue(name);
  return fields.FloatOr(name, kScaleRange, is_null ? 0.0 : fallback);
}

Status Describe(const ConfigFields& fields, ModelSpec& spec) {
  KVICK_RETURN_IF_ERROR(DescribeGemma(fields, kLayersOf27B, spec));
  KVICK_ASSIGN_OR_RETURN(spec.score_soft_cap, ReadCap(fields, kScoreCap, 50.0));
  KVICK_ASSIGN_OR_RETURN(spec.logits_soft_cap, ReadCap(fields, kLogitCap, 30.0));
  KVICK_ASSIGN_OR_RETURN(const int64_t window, ReadWindow(fields, spec, kDefaultWindow));
  return SetWindows(
      fields, window, [](int64_t layer) { return layer % 2 == 0; }, spec);
}

}  // namespace

constexpr Architecture kGemma2{
    .gguf_name = "gemma2",
    .hf_name = "gemma2",
    .hf_defaults = {.max_positions = 8192,
                    .num_kv_heads = 4,
                    .head_dim = 256,
                    .tie_word_embeddings = true,
                    .activation_key = "hidden_activation",
                    .activation = "gelu_pytorch_tanh"},
    .gguf_tensors = &kGgufTensors,
    .hf_tensors = &kHfPostNormTensors,
    .describe = Describe,
};

}  // namespace kvick
