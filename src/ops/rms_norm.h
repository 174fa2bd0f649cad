#ifndef KVICK_OPS_RMS_NORM_H_
#define KVICK_OPS_RMS_NORM_H_

#include <cstdint>

#include "base/exec.h"

namespace kvick {

struct RmsNormArgs {
  const float* x = nullptr;       // [T, n]
  const float* weight = nullptr;  // [n]
  float epsilon = 0;
  int64_t num_tokens = 0;  // T
  int64_t num_cols = 0;    // n
  float* out = nullptr;    // [T, n]
};

// Scales each row to a mean square of one, then by the weights.
//
//   out[t,i] = x[t,i] / sqrt(mean_j(x[t,j]^2) + epsilon) * weight[i]
//
// Shapes    x, out [T, n];  weight [n];  T >= 0, n >= 1
// Types     f32; the squares are summed in f64, so that no finite row overflows
// Order     canonical: sixteen lanes, then a fixed tree (docs/numerics.md)
// Requires  epsilon >= 0;  out is x, or overlaps nothing
// Cost      reads x twice;  allocates nothing
// Source    arXiv:1910.07467
void RmsNorm(const Exec& exec, const RmsNormArgs& args);

}  // namespace kvick

#endif  // KVICK_OPS_RMS_NORM_H_
