#ifndef KVICK_OPS_LINEAR_H_
#define KVICK_OPS_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/exec.h"
#include "kvick/tensor.h"
#include "ops/matrix_view.h"

namespace kvick {

// How activations enter bf16 tiles. All other kernels keep them in f32 and ignore this.
enum class TilePrecision {
  kRounded,  ///< bf16: 8 bits of each number
  kSplit,    ///< the sum of two bf16: 16 bits, twice the multiplications, the same memory
};

struct LinearArgs {
  MatrixView w;                 // [N, K]
  const float* bias = nullptr;  // [N], or null
  const float* x = nullptr;     // [T, K], row-major
  int64_t num_tokens = 0;       // T
  float* y = nullptr;           // [T, N], row-major
  TilePrecision precision = TilePrecision::kRounded;
};

// Bytes of scratch that Linear needs for up to max_tokens tokens: the activations packed for the
// matrix tiles, or 0.
int64_t LinearScratchBytes(Isa isa, DType dtype, int64_t max_tokens, int64_t num_cols);

// Multiplies the activations of each token by a weight matrix, which is read in place.
//
//   y[t,n] = sum_k w[n,k] * x[t,k] (+ bias[n])
//
// Shapes    w [N, K];  bias [N];  x [T, K];  y [T, N];  T >= 0, N and K >= 1
// Types     w f32 | f16 | bf16 | q8_0, converted to f32 exactly;  x, y, bias, accumulation f32.
//           On kAmx and kAmxEmulated with bf16 weights, x is used as bf16: see TilePrecision
// Order     k ascending, never split: the bits of y[t,n] depend on row n of w, row t of x, bias[n],
//           precision and exec.isa alone
// Requires  y overlaps nothing;  scratch has LinearScratchBytes(exec.isa, w.dtype, T, K) bytes, is
//           aligned to 64 and used by no other thread;  w.data may be unaligned
// Cost      reads w from memory once;  allocates nothing;  rows are distributed over threads
void Linear(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch);

}  // namespace kvick

#endif  // KVICK_OPS_LINEAR_H_
