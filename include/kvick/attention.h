#ifndef KVICK_ATTENTION_H_
#define KVICK_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kvick/kv_layout.h"
#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// One implementation of the kernels: bits agree within it.
struct IsaInfo {
  std::string_view name;  ///< what `isa` options take: "amx", "avx512", "avx2", "scalar", ...
  std::string_view description;
  bool is_available = false;  ///< on this machine
  bool is_default = false;    ///< what "auto" takes
};

// All that are compiled in, best first.
std::vector<IsaInfo> KnownIsas();

struct AttentionConfig {
  int64_t num_heads = 0;          ///< H, query heads: a multiple of num_kv_heads
  int64_t num_kv_heads = 0;       ///< K
  int64_t head_dim = 0;           ///< D, even, 2 to 256
  DType dtype = DType::kBF16;     ///< of keys and values: bf16, f16 or f32
  float scale = 0.0f;             ///< of the scores; 0: 1 / sqrt(D)
  std::string_view isa = "auto";  ///< a name of KnownIsas(); read during Create alone
  int num_threads = 0;            ///< 0: the cores that the process may use
};

// The new tokens of one sequence: the last num_tokens positions of its view.
struct AttentionQuery {
  KvView kv;
  int64_t num_tokens = 0;
};

// Attends each new query token to the cached keys and values of its own sequence.
//
//   out[t,h] = sum_s softmax_s(scale * <q[t,h], k[s,g]>) * v[s,g],   g = h / (H / K)
//   s in [0, pos[t]]
//
// The bits of out[t,h] depend on q[t,h], the keys and values of positions [0, pos[t]] and the isa,
// and on nothing else: not on the other tokens, sequences, blocks, strides or threads. (On tiles,
// provided that the values of the view are finite: see docs/numerics.md.)
//
// Threads  one Run at a time: the scratch memory is the object's own
// Source   online softmax, arXiv:1805.02867; paged blocks, arXiv:2309.06180; GQA, arXiv:2305.13245
class Attention {
 public:
  // Errors  invalid_argument: numbers that cannot be, or no such isa;
  //         unsupported: an odd or too large head_dim, or an isa that this machine lacks
  static Result<std::unique_ptr<Attention>> Create(const AttentionConfig& config);

  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  ~Attention();

  // Shapes  q, out [T, H, D], T = the sum of all num_tokens, in the order of `queries`, no gaps;
  //         each view over more than `layer` layers, [K, *, D] blocks of config.dtype
  // Types   q, out f32;  accumulation f32
  // Errors  invalid_argument: shapes or types disagree; out is untouched
  // Cost    reads 2 * S * K * D elements a sequence of S tokens; allocates nothing
  Status Run(int64_t layer, std::span<const AttentionQuery> queries, const TensorView& q,
             const MutableTensorView& out);

  std::string_view isa() const;

 private:
  struct State;
  explicit Attention(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_ATTENTION_H_
