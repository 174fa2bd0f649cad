#ifndef KVICK_ATTENTION_H_
#define KVICK_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/exec.h"
#include "kvick/kv_layout.h"
#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

struct AttentionConfig {
  int64_t num_heads = 0;       ///< H, query heads: a multiple of num_kv_heads
  int64_t num_kv_heads = 0;    ///< K
  int64_t head_dim = 0;        ///< D, even, 2 to 256
  DType dtype = DType::kBF16;  ///< of keys and values: bf16, f16 or f32
  float scale = 0.0f;          ///< of the scores; 0: 1 / sqrt(D)
  ExecOptions exec;
  float soft_cap = 0.0f;              ///< of the scores; 0: none
  std::vector<int64_t> windows = {};  ///< [L], tokens; 0: no window; empty: no layer has one
};

// The new tokens of one sequence: they are the last num_tokens positions of its view.
struct AttentionQuery {
  KvView kv;
  int64_t num_tokens = 0;
};

// Attention of each new token to the cached keys and values of its own sequence.
//
//   out[t,h] = sum_s softmax_s(scale * <q[t,h], k[s,g]>) * v[s,g],   g = h / (H / K)
//   s in [0, pos[t]], with a window of W tokens in (pos[t] - W, pos[t]]
//   with a soft cap, cap * tanh(scale * <q, k> / cap) in place of scale * <q, k>
//
// out[t,h] depends on q[t,h], on the keys and values of the positions s and on the numerics; no
// other position is read.
// Other tokens, sequences, blocks, strides, threads and the isa change no bit of it. (On tiles this
// holds if the values of the view are finite: see docs/numerics.md.)
//
// Threads  one Run at a time: it uses the object's scratch memory
// Source   online softmax, arXiv:1805.02867; paged blocks, arXiv:2309.06180; GQA, arXiv:2305.13245
class Attention {
 public:
  // Errors  invalid_argument: a number out of range, an unknown name in config.exec, or an isa of
  //         other numerics;
  //         unsupported: an odd or too large head_dim, or an isa that this machine does not have
  static Result<std::unique_ptr<Attention>> Create(const AttentionConfig& config);

  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  ~Attention();

  // Shapes  q, out [T, H, D], contiguous; T = the sum of all num_tokens, in the order of `queries`;
  //         each view has more than `layer` layers, and K heads of D elements of config.dtype; it
  //         begins no later than the window of its first new token
  // Types   q, out f32;  accumulation f32
  // Errors  invalid_argument: a shape or type differs; out is unchanged
  // Cost    reads 2 * S * K * D elements for a sequence of S tokens, with a window at most
  //         2 * (W + num_tokens) * K * D; allocates nothing
  Status Run(int64_t layer, std::span<const AttentionQuery> queries, const TensorView& q,
             const MutableTensorView& out);

  std::string numerics() const;  ///< name and version: "canonical-1", "tiles-high-1"
  std::string_view isa() const;

 private:
  struct State;
  explicit Attention(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_ATTENTION_H_
