#ifndef KVICK_ATTENTION_ONLINE_SOFTMAX_H_
#define KVICK_ATTENTION_ONLINE_SOFTMAX_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kvick {

// The softmax of the chunks seen so far, for one column. The first chunk is assigned, not merged.
struct OnlineSoftmax {
  float* max = nullptr;
  float* sum = nullptr;
  float* out = nullptr;  // [D]

  void Assign(const OnlineSoftmax& chunk, int64_t head_dim) const {
    *max = *chunk.max;
    *sum = *chunk.sum;
    std::copy_n(chunk.out, head_dim, out);
  }

  // Merges the next chunk. Not associative: the bits depend on the order of chunks.
  void Merge(const OnlineSoftmax& chunk, int64_t head_dim) const {
    const float new_max = std::max(*max, *chunk.max);
    const float keep = std::exp(*max - new_max), take = std::exp(*chunk.max - new_max);
    *max = new_max;
    *sum = *sum * keep + *chunk.sum * take;
    for (int64_t d = 0; d < head_dim; ++d) out[d] = out[d] * keep + chunk.out[d] * take;
  }
};

}  // namespace kvick

#endif  // KVICK_ATTENTION_ONLINE_SOFTMAX_H_
