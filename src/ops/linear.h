#ifndef KVICK_OPS_LINEAR_H_
#define KVICK_OPS_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/exec.h"
#include "kvick/tensor.h"
#include "ops/matrix_view.h"

namespace kvick {

// How activations meet bf16 weights. All other weights meet them in f32.
enum class Activations {
  kRounded,  ///< to bf16: 8 bits of each number
  kSplit,    ///< the sum of two bf16: 16 bits, twice the multiplications, the same memory
};

struct LinearArgs {
  MatrixView w;                 // [N, K]
  const float* bias = nullptr;  // [N], or null
  const float* x = nullptr;     // [T, K], row-major
  int64_t num_tokens = 0;       // T
  float* y = nullptr;           // [T, N], row-major
  Activations activations = Activations::kRounded;
};

// Bytes of scratch that Linear needs for up to max_tokens tokens: the packed activations, and the
// panels of each thread.
int64_t LinearScratchBytes(const Exec& exec, WeightType type, int64_t max_tokens, int64_t num_cols);

// Multiplies the activations of each token by a weight matrix, which is read in place.
//
//   y[t,n] = sum_k w[n,k] * x[t,k] (+ bias[n])
//
// Shapes    w [N, K];  bias [N];  x [T, K];  y [T, N];  T >= 0, N and K >= 1
// Types     w of any type;  x, y, bias, accumulation f32. With bf16 weights, x is used as bf16: see
//           Activations; with quantized ones, as integers of 16 bits: see linear_quantized.h
// Order     canonical, or that of tiles (docs/numerics.md): the bits of y[t,n] depend on row n of
//           w, row t of x, bias[n], activations and OrderOf(exec.isa) alone
// Requires  y overlaps nothing;  scratch has LinearScratchBytes(exec, w.type, T, K) bytes, is
//           aligned to 64 and used by no other thread;  w.data may be unaligned
// Cost      reads w from memory once;  allocates nothing;  rows are distributed over threads
void Linear(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch);

}  // namespace kvick

#endif  // KVICK_OPS_LINEAR_H_
