#ifndef KVICK_ENGINE_SAMPLER_H_
#define KVICK_ENGINE_SAMPLER_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick {

// Errors: invalid_argument: an option out of its range.
Status CheckSampling(const SamplingOptions& options);

// The index of the largest logit, the lowest of equals; NaN is passed over.
// Errors: internal: there is none, or it is infinite.
Result<int32_t> ArgMax(std::span<const float> logits);

// Chooses tokens for one request. The same logits, options and seed give the same tokens. Allocates
// nothing after the first token.
class Sampler {
 public:
  // REQUIRES: CheckSampling(options).
  explicit Sampler(const SamplingOptions& options);

  // Errors: as ArgMax.
  Result<int32_t> Sample(std::span<const float> logits);

 private:
  struct Candidate {
    int32_t id;
    float logit;
    double weight;  // exp(logit - best logit)
  };

  void Collect(std::span<const float> logits);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;  // most likely first
};

}  // namespace kvick

#endif  // KVICK_ENGINE_SAMPLER_H_
