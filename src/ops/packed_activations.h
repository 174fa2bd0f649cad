#ifndef KVICK_OPS_PACKED_ACTIVATIONS_H_
#define KVICK_OPS_PACKED_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/checked_math.h"
#include "base/exec.h"
#include "ops/linear.h"

namespace kvick {

// How the columns of a token's activations are stored for the kernels of Linear: in steps, each a
// few vectors of sixteen lanes in the order in which they are added. The last step is filled up
// with zeros.
enum class ActivationFormat {
  kF32,        ///< 16 columns: [16] f32. For weights of f32, f16, q8_0
  kF32Pairs,   ///< 32 columns: [16 odd][16 even] bf16 values as f32
  kBF16Pairs,  ///< 32 columns: [32] bf16, the operand of a bf16 dot product
};

constexpr int64_t StepColumns(ActivationFormat format) {
  return format == ActivationFormat::kF32 ? 16 : 32;
}

// Bytes of one term of a step.
constexpr int64_t StepBytes(ActivationFormat format) {
  return format == ActivationFormat::kF32Pairs ? 128 : 64;
}

// The format of a weight type. With kSplit a step of bf16 pairs has two terms, the leading one
// first, then what rounding left of it, rounded as well.
ActivationFormat FormatFor(Isa isa, DType dtype);
int NumTerms(ActivationFormat format, Activations activations);

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
