#ifndef KVICK_MEASURE_MATRIX_LIMIT_H_
#define KVICK_MEASURE_MATRIX_LIMIT_H_

#include "base/exec.h"
#include "kvick/tensor.h"

namespace kvick {

// Multiply-adds on registers, with enough independent sums to hide their latency: the limit of
// kernels that are bound by arithmetic.
class MatrixLimit {
 public:
  // Uses the instructions that the kernels of that isa use for data of that type: bf16 matrix tiles
  // or f32 vectors. REQUIRES: IsaAvailable(exec.isa).
  MatrixLimit(const Exec& exec, DType dtype);

  void Pass() const;
  // A multiplication and an addition count as two.
  double flops_per_pass() const;

 private:
  // Adds `num_steps` times and returns a number that depends on all of them.
  using Sums = float (*)(int64_t num_steps);

  int num_threads_;
  Sums sums_;
  double flops_per_step_;
  int64_t steps_per_task_;
};

}  // namespace kvick

#endif  // KVICK_MEASURE_MATRIX_LIMIT_H_
