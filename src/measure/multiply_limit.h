#ifndef KVICK_MEASURE_MULTIPLY_LIMIT_H_
#define KVICK_MEASURE_MULTIPLY_LIMIT_H_

#include <string_view>
#include <vector>

#include "base/exec.h"
#include "kvick/tensor.h"
#include "quant/weight_format.h"

namespace kvick {

// The instructions that multiply and add. Each has a peak of its own.
enum class Multiplication {
  kF32Fma,     ///< f32 fused multiply-add
  kBF16Dot,    ///< VDPBF16PS: pairs of bf16 into f32
  kInt16Dot,   ///< VPDPWSSD, or VPMADDWD and an addition: pairs of int16 into int32
  kInt8Dot,    ///< VPDPBUSD: four int8 into int32
  kBF16Tiles,  ///< TDPBF16PS: matrix tiles of bf16 into f32
};

// "f32 fma", "bf16 dot", "int16 dot", "int8 dot", "bf16 tiles"
std::string_view MultiplicationName(Multiplication multiplication);

// Those that kernels of that isa can use on this machine; f32 FMA comes first.
// REQUIRES: IsaAvailable(isa).
std::vector<Multiplication> MultiplicationsOf(Isa isa);

// What kernels of that isa multiply weights of that type with, and what attention over keys and
// values of that type multiplies with.
Multiplication WeightMultiplication(Isa isa, WeightType type);
// Operations per weight and token: 2, or 4 where activations of 16 bits meet it as two bytes.
double WeightFlops(Isa isa, WeightType type);
Multiplication AttentionMultiplication(Isa isa, DType dtype);

// Multiply-adds on registers, with enough independent sums to hide their latency: the limit of
// kernels that are bound by arithmetic.
class MultiplyLimit {
 public:
  // REQUIRES: `multiplication` is one of MultiplicationsOf(exec.isa).
  MultiplyLimit(const Exec& exec, Multiplication multiplication);

  void Pass() const;
  // A multiplication and an addition count as two, of integers too.
  double flops_per_pass() const;

  // Adds `num_steps` times and returns a number that depends on all of them.
  using Sums = float (*)(int64_t num_steps);
  struct Kernel {
    Sums sums = nullptr;
    double flops_per_step = 0;
    int64_t steps_per_task = 0;
  };

 private:
  int num_threads_;
  Kernel kernel_;
};

}  // namespace kvick

#endif  // KVICK_MEASURE_MULTIPLY_LIMIT_H_
