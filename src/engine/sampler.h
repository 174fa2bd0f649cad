#ifndef KVICK_ENGINE_SAMPLER_H_
#define KVICK_ENGINE_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick {

// Errors  invalid_argument: an option out of range, a token outside of the vocabulary, or a
//         logit_bias that forbids every token
Status CheckSampling(const SamplingOptions& options, int64_t vocab_size);

// The index of the largest logit, of equals the lowest. NaN is ignored.
// Errors  corrupt: all logits are NaN or minus infinity;  invalid_argument: minus infinity
Result<int32_t> ArgMax(std::span<const float> logits);

// Chooses the tokens of one sequence. The same logits, tokens, options and seed give the same
// choices. Allocates nothing after the first token.
class Sampler {
 public:
  // REQUIRES: CheckSampling(options).
  explicit Sampler(SamplingOptions options);

  // Chooses the token after `token_ids`, which the repetition penalty counts. Each call passes
  // those of the call before, and more. Errors: as ArgMax, for logits with penalty and biases.
  Result<int32_t> Sample(std::span<const float> logits, std::span<const int32_t> token_ids = {});

  // What was NaN in the logits of all calls.
  const std::optional<NanLogits>& nan_logits() const { return nan_logits_; }

 private:
  struct Candidate {
    int32_t id;
    float logit;
    double weight;  // exp(logit - best logit)
  };

  void CountNans(std::span<const float> logits);
  std::span<const float> Adjusted(std::span<const float> logits,
                                  std::span<const int32_t> token_ids);
  void Collect(std::span<const float> logits);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();

  SamplingOptions options_;
  std::mt19937_64 random_;  // whose numbers the C++ standard specifies; its distributions are not
  std::vector<float> adjusted_;        // [V] logits with bias and penalty
  std::vector<bool> has_occurred_;     // [V]
  size_t num_counted_tokens_ = 0;      // in has_occurred_
  std::vector<Candidate> candidates_;  // most likely first
  std::optional<NanLogits> nan_logits_;
  int64_t num_sampled_ = 0;
};

}  // namespace kvick

#endif  // KVICK_ENGINE_SAMPLER_H_
