#ifndef KVICK_MODEL_FORWARD_H_
#define KVICK_MODEL_FORWARD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/exec.h"
#include "base/memory.h"
#include "kvick/attention.h"
#include "model/kv_target.h"
#include "model/model_file.h"
#include "ops/linear.h"

namespace kvick {

// What one pass computes. Spans live until it returns.
struct ForwardStep {
  std::span<const int32_t> tokens;       // [T], each within the vocabulary
  std::span<const int64_t> positions;    // [T]
  std::span<const int32_t> output_rows;  // tokens to compute logits for, ascending
  std::span<float> logits;               // [output_rows, V]
  KvTarget* kv = nullptr;
};

// The layers of a Llama and the memory to run them in.
//
//   x = embedding[token]
//   x += o(attention(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))))     for each layer
//   x += down(silu(gate(norm(x))) * up(norm(x)))
//   logits = output(norm(x))
//
// E hidden_size, I intermediate_size, H heads, K KV heads, D head_dim, V vocabulary, T tokens.
// Source  Llama, arXiv:2302.13971; grouped heads, arXiv:2305.13245; SwiGLU, arXiv:2002.05202
class Forward {
 public:
  // `file` must outlive it. Errors: exhausted: not that much memory; as Attention::Create.
  static Result<std::unique_ptr<Forward>> Create(const ModelFile& file,
                                                 const AttentionConfig& attention,
                                                 int64_t max_tokens);

  // REQUIRES: T <= max_tokens, and the sizes of ForwardStep. Allocates nothing.
  Status Run(const ForwardStep& step);

  const Exec& exec() const { return exec_; }
  int64_t max_tokens() const { return max_tokens_; }

 private:
  Forward(const ModelFile& file, const Exec& exec, int64_t max_tokens);

  Status Allocate();
  void Embed(std::span<const int32_t> tokens);
  Status AttentionBlock(int64_t layer, const ForwardStep& step);
  void FeedForwardBlock(int64_t layer, int64_t num_tokens);
  void Logits(const ForwardStep& step);
  void Norm(const std::vector<float>& weight, int64_t num_tokens);
  struct Projection {
    const MatrixView& w;
    const std::vector<float>& bias;                   // empty: none
    Activations activations = Activations::kRounded;  // with Precision::kStandard
  };
  void Project(const Projection& p, int64_t num_tokens, const float* in, float* out);

  const LlamaConfig& config_;
  const ModelWeights& weights_;
  std::vector<double> inverse_frequencies_;  // [D/2]
  Exec exec_;
  int64_t max_tokens_;
  std::unique_ptr<Attention> attention_;

  MappedRegion memory_;        // all that follows
  float* x_ = nullptr;         // [T, E] residual stream
  float* normed_ = nullptr;    // [T, E]
  float* block_ = nullptr;     // [T, E] what a block adds to x
  float* q_ = nullptr;         // [T, H, D]
  float* k_ = nullptr;         // [T, K, D]
  float* v_ = nullptr;         // [T, K, D]
  float* attended_ = nullptr;  // [T, H, D]
  float* gate_ = nullptr;      // [T, I]
  float* up_ = nullptr;        // [T, I]
  float* cos_ = nullptr;       // [T, D/2]
  float* sin_ = nullptr;       // [T, D/2]
  std::span<std::byte> linear_scratch_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_FORWARD_H_
