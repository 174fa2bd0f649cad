#ifndef KVICK_ATTENTION_ONLINE_SOFTMAX_H_
#define KVICK_ATTENTION_ONLINE_SOFTMAX_H_

#include <cstdint>

#include "base/isa.h"

namespace kvick {

// The softmax of some chunks, for one column: see PartialResult.
struct OnlineSoftmax {
  float* max = nullptr;
  float* sum = nullptr;
  float* out = nullptr;  // [D]
};

// Compiled for an isa; the bits are the same for every isa.
struct OnlineSoftmaxKernel {
  // Merges the next chunk into the total. Not associative: the bits depend on the order of chunks.
  // With m = max(total.max, chunk.max), keep = exp(total.max - m), take = exp(chunk.max - m):
  //   sum    = fma(total.sum, keep, chunk.sum * take)
  //   out[d] = fma(total.out[d], keep, chunk.out[d] * take)
  void (*merge)(const OnlineSoftmax& total, const OnlineSoftmax& chunk, int64_t head_dim);

  // out[d] = total.out[d] / total.sum
  void (*divide)(const OnlineSoftmax& total, int64_t head_dim, float* out);
};

// REQUIRES: IsaAvailable(isa).
const OnlineSoftmaxKernel& OnlineSoftmaxKernelFor(Isa isa);

}  // namespace kvick

#endif  // KVICK_ATTENTION_ONLINE_SOFTMAX_H_
