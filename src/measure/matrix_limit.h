#ifndef KVICK_MEASURE_MATRIX_LIMIT_H_
#define KVICK_MEASURE_MATRIX_LIMIT_H_

#include "base/exec.h"
#include "kvick/tensor.h"

namespace kvick {

// Multiply-adds on registers alone, in as many independent sums as hide their latency: what kernels
// are held against whose time is that of arithmetic.
class MatrixLimit {
 public:
  // The units that kernels of that isa use for weights, keys and values of that type: bf16 matrix
  // tiles, or f32 vectors. REQUIRES: IsaAvailable(exec.isa).
  MatrixLimit(const Exec& exec, DType dtype);

  void Pass() const;
  // A multiplication and an addition are two.
  double flops_per_pass() const;

 private:
  // Sums `num_steps` times and returns a number that depends on each.
  using Sums = float (*)(int64_t num_steps);

  int num_threads_;
  Sums sums_;
  double flops_per_step_;
  int64_t steps_per_task_;
};

}  // namespace kvick

#endif  // KVICK_MEASURE_MATRIX_LIMIT_H_
