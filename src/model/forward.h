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
#include "model/model_spec.h"
#include "ops/linear.h"

namespace kvick {

// What one pass computes. Spans live until it returns.
struct ForwardStep {
  std::span<const int32_t> tokens;       // [T], each within the vocabulary
  std::span<const int64_t> positions;    // [T]
  std::span<const int64_t> lengths;      // [T]: of the token's whole sequence, with this pass
  std::span<const int32_t> output_rows;  // tokens to compute logits for, ascending
  std::span<float> logits;               // [output_rows, V]
  KvTarget* kv = nullptr;
};

// The attention of a model with keys and values of a type.
AttentionConfig AttentionOf(const ModelSpec& spec, DType kv_dtype, const ExecOptions& exec);

// The layers of a decoder, as its ModelSpec describes them, and the memory to run them in.
//
//   x = embedding_scale * embedding[token]
//   h = norm(x)                                                           for each layer
//   x += residual_scale * norm(o(attention(rope(norm(q(h))), rope(norm(k(h))), v(h))))
//   h = norm(x)
//   x += residual_scale * norm(down(activation(gate(h)) * up(h)))
//   logits = cap(logits_scale * output(norm(x)))
//
// The spec says which of the norms, rotations and factors a layer has.
// E hidden_size, I intermediate_size, H heads, K KV heads, D head_dim, V vocabulary, T tokens.
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
  void RotateTables(const ForwardStep& step);
  Status AttentionBlock(int64_t layer, const ForwardStep& step);
  void ProjectQueriesAndKeys(int64_t layer, int64_t num_tokens, const float* in);
  void FeedForwardBlock(int64_t layer, int64_t num_tokens);
  void Logits(const ForwardStep& step);
  // out = norm(in), or `in` itself where there is no weight. Returns where the result is.
  const float* Norm(const std::vector<float>& weight, int64_t num_tokens, const float* in,
                    float* out);
  void AddBranch(const std::vector<float>& post_norm, int64_t num_tokens);
  struct Projection {
    const MatrixView& w;
    const std::vector<float>& bias;                   // empty: none
    Activations activations = Activations::kRounded;  // with Precision::kStandard
  };
  void Project(const Projection& p, int64_t num_tokens, const float* in, float* out);

  // One of the model's ropes, and its table for the tokens of a pass.
  struct Rope {
    std::vector<double> frequencies;       // [R/2]
    std::vector<double> long_frequencies;  // [R/2], of sequences longer than switch_length
    int64_t switch_length;
    float* cos = nullptr;  // [T, R/2]
    float* sin = nullptr;  // [T, R/2]
  };

  const ModelSpec& spec_;
  const ModelWeights& weights_;
  std::vector<Rope> ropes_;
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
  std::span<std::byte> linear_scratch_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_FORWARD_H_
