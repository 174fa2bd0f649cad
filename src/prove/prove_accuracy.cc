// Logits against the same model in double precision.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/forward_ref.h"
#include "model/model_parts.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kExplanation =
    "A plain forward pass in double precision computes the same logits. The difference is what the "
    "cache's number type and the rounding of the kernels cost.";

// Relative error in 2-norms: that of models with random weights, the worst case, with a margin. It
// comes from rounding keys and values, and on tiles also activations (docs/numerics.md).
double ErrorBound(DType kv_dtype) {
  switch (kv_dtype) {
    case DType::kF32:
      return 1e-5;
    case DType::kF16:
      return 2e-3;
    default:
      return 2.5e-2;
  }
}

// The reference multiplies one number at a time: this many take about a second.
constexpr int64_t kMaxMultiplications = 1'000'000'000;

}  // namespace

Result<ProofSection> ProveAccuracy(ProofContext& context) {
  const ModelInfo& info = context.model.info();
  std::vector<int32_t> text;
  for (const auto& prompt : context.prompts) text.insert(text.end(), prompt.begin(), prompt.end());
  const int64_t max_tokens = std::clamp<int64_t>(kMaxMultiplications / NumWeights(info), 1,
                                                 std::min<int64_t>(64, info.max_positions));
  text.resize(
      static_cast<size_t>(std::min<int64_t>(max_tokens, static_cast<int64_t>(text.size()))));

  const std::vector<double> exact_logits = ForwardRef(context.model.parts().file, text);
  KVICK_ASSIGN_OR_RETURN(const auto subject,
                         CachedSubject::Create(context.model, context.Subjects()));
  const auto width = static_cast<size_t>(info.vocab_size);
  std::vector<float> logits(width);
  double difference = 0, norm = 0;
  KVICK_RETURN_IF_ERROR(subject->Begin());
  for (size_t t = 0; t < text.size(); ++t) {
    KVICK_RETURN_IF_ERROR(subject->Feed({&text[t], 1}, logits));
    for (size_t i = 0; i < width; ++i) {
      const double exact = exact_logits[t * width + i];
      difference += (logits[i] - exact) * (logits[i] - exact);
      norm += exact * exact;
    }
  }
  const double error = std::sqrt(difference / norm);
  const DType kv_dtype = subject->runner().kv_dtype();
  const double bound = ErrorBound(kv_dtype);
  return ProofSection{
      {},
      {},
      {{fmt::format("logits of {} tokens against double precision, {} cache: at most {:.1e}",
                    text.size(), DTypeName(kv_dtype), bound),
        fmt::format("relative error {:.1e}", error), HoldsIf(error <= bound), kExplanation}}};
}

}  // namespace kvick
