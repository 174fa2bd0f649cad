#ifndef KVICK_ENGINE_SAMPLER_H_
#define KVICK_ENGINE_SAMPLER_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick {

// Errors: invalid_argument: an option out of its range, or a token out of the vocabulary.
Status CheckSampling(const SamplingOptions& options, int64_t vocab_size);

// The index of the largest logit, the lowest of equals; NaN is passed over.
// Errors: internal: there is none, or it is infinite.
Result<int32_t> ArgMax(std::span<const float> logits);

// Chooses tokens for one text. The same logits, text, options and seed give the same tokens.
// Allocates nothing after the first token.
class Sampler {
 public:
  // REQUIRES: CheckSampling(options).
  explicit Sampler(SamplingOptions options);

  // The token after `text`, each time the text before with tokens behind it: what the repetition
  // penalty counts. Errors: as ArgMax.
  Result<int32_t> Sample(std::span<const float> logits, std::span<const int32_t> text = {});

 private:
  struct Candidate {
    int32_t id;
    float logit;
    double weight;  // exp(logit - best logit)
  };

  std::span<const float> Adjusted(std::span<const float> logits, std::span<const int32_t> text);
  void Collect(std::span<const float> logits);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<float> adjusted_;        // [V] logits with bias and penalty
  std::vector<bool> is_in_text_;       // [V]
  size_t num_text_tokens_ = 0;         // that is_in_text_ knows
  std::vector<Candidate> candidates_;  // most likely first
};

}  // namespace kvick

#endif  // KVICK_ENGINE_SAMPLER_H_
