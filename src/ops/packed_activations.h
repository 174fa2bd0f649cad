#ifndef KVICK_OPS_PACKED_ACTIVATIONS_H_
#define KVICK_OPS_PACKED_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/checked_math.h"
#include "base/exec.h"
#include "ops/linear.h"

namespace kvick {

// How the columns of a token's activations are stored for the kernels of Linear: in steps of one or
// two vectors of sixteen 32-bit lanes. The last step is filled up with zeros.
enum class ActivationFormat {
  kF32,        ///< 16 columns a step: for weights of f32, f16
  kBF16Pairs,  ///< 32 columns a step, rounded to bf16: lane i has columns 2i and 2i + 1
  kF32Pairs,   ///< the same numbers as f32: the odd columns, then the even ones
};

constexpr int64_t StepColumns(ActivationFormat format) {
  return format == ActivationFormat::kF32 ? 16 : 32;
}

// Bytes of one term of a step.
constexpr int64_t StepBytes(ActivationFormat format) {
  return format == ActivationFormat::kF32Pairs ? 128 : 64;
}

// For kernels that multiply in f32, bf16 pairs are converted each time: 6 of 48 operations on
// AVX-512, but 6 of 30 on AVX2, where fewer rows share a conversion. They pay where f32 pairs would
// not stay in the L2 cache.
constexpr ActivationFormat FormatFor(Isa isa, WeightType type, int64_t num_tokens) {
  constexpr int64_t kManyTokens = 64;
  if (type != WeightType::kBF16) return ActivationFormat::kF32;
  if (isa == Isa::kAvx512Bf16) return ActivationFormat::kBF16Pairs;
  if (isa == Isa::kAvx512 && num_tokens >= kManyTokens) return ActivationFormat::kBF16Pairs;
  return ActivationFormat::kF32Pairs;
}

// With kSplit, a step of pairs has two terms, the leading one first, then what rounding left of it,
// rounded as well.
constexpr int NumTerms(ActivationFormat format, Activations activations) {
  return format != ActivationFormat::kF32 && activations == Activations::kSplit ? 2 : 1;
}

// The activations of all tokens: steps [step][term] for each.
struct PackedActivations {
  ActivationFormat format = ActivationFormat::kF32;
  int num_terms = 1;
  int64_t num_steps = 0;
  int64_t row_stride = 0;  // bytes; an odd number of cache lines, so that rows share no sets
  std::byte* data = nullptr;

  // Without memory. REQUIRES: num_cols >= 1.
  static PackedActivations For(ActivationFormat format, int num_terms, int64_t num_cols);

  const std::byte* Row(int64_t token) const { return data + token * row_stride; }
};

// Fills `packed` with the activations of args, on all threads.
// REQUIRES: packed.data has num_tokens rows and is aligned to 64.
void PackActivations(const Exec& exec, const LinearArgs& args, const PackedActivations& packed);

}  // namespace kvick

#endif  // KVICK_OPS_PACKED_ACTIVATIONS_H_
