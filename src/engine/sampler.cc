#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace kvick {

Status CheckSampling(const SamplingOptions& options, int64_t vocab_size) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: temperature is {}, 0 or more is wanted",
                options.temperature);
  }
  if (options.top_k < 0) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: top_k is {}, 0 (all) or more is wanted",
                options.top_k);
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: top_p is {}, above 0 up to 1 is wanted",
                options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: min_p is {}, 0 to 1 is wanted",
                options.min_p);
  }
  if (!(options.repetition_penalty >= 0.01 && options.repetition_penalty <= 100)) {
    return Fail(ErrorCode::kInvalidArgument,
                "sampling: repetition_penalty is {}, 0.01 to 100 is wanted",
                options.repetition_penalty);
  }
  for (const LogitBias& bias : options.logit_bias) {
    if (bias.token < 0 || bias.token >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument,
                  "sampling: a bias of token {}, the vocabulary is 0 to {}", bias.token,
                  vocab_size - 1);
    }
    constexpr float kMaxBias = 1e30f;  // so that sums are finite
    if (!(std::abs(bias.bias) <= kMaxBias) && bias.bias != -INFINITY) {
      return Fail(ErrorCode::kInvalidArgument,
                  "sampling: the bias of token {} is {}, {} to {} or -inf is wanted", bias.token,
                  bias.bias, -kMaxBias, kMaxBias);
    }
  }
  return {};
}

Result<int32_t> ArgMax(std::span<const float> logits) {
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (best < 0 || logits[i] > logits[static_cast<size_t>(best)]) best = static_cast<int32_t>(i);
  }
  if (best >= 0 && std::isfinite(logits[static_cast<size_t>(best)])) return best;
  const float largest = best < 0 ? NAN : logits[static_cast<size_t>(best)];
  return Fail(ErrorCode::kInternal,
              "sampling: the largest of {} logits is {}, a finite number is wanted", logits.size(),
              largest);
}

Sampler::Sampler(SamplingOptions options) : options_(std::move(options)), random_(options_.seed) {}

Result<int32_t> Sampler::Sample(std::span<const float> logits, std::span<const int32_t> text) {
  if (options_.repetition_penalty != 1 || !options_.logit_bias.empty()) {
    logits = Adjusted(logits, text);
  }
  KVICK_ASSIGN_OR_RETURN(const int32_t best, ArgMax(logits));
  if (options_.temperature == 0) return best;
  Collect(logits);
  KeepTopP();
  KeepMinP();
  return Draw();
}

std::span<const float> Sampler::Adjusted(std::span<const float> logits,
                                         std::span<const int32_t> text) {
  adjusted_.assign(logits.begin(), logits.end());
  for (const LogitBias& bias : options_.logit_bias) {
    adjusted_[static_cast<size_t>(bias.token)] += bias.bias;
  }
  if (options_.repetition_penalty == 1) return adjusted_;
  is_in_text_.resize(logits.size());
  for (; num_text_tokens_ < text.size(); ++num_text_tokens_) {
    is_in_text_[static_cast<size_t>(text[num_text_tokens_])] = true;
  }
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    if (!is_in_text_[i]) continue;
    adjusted_[i] = adjusted_[i] > 0 ? adjusted_[i] / penalty : adjusted_[i] * penalty;
  }
  return adjusted_;
}

// Sorted by logit, equals by id: the order does not depend on the library's sort.
void Sampler::Collect(std::span<const float> logits) {
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == -INFINITY) continue;
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 0});
  }
  const auto num = static_cast<int64_t>(candidates_.size());
  const int64_t num_kept = options_.top_k == 0 ? num : std::min(options_.top_k, num);
  std::partial_sort(candidates_.begin(), candidates_.begin() + num_kept, candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
                    });
  candidates_.resize(static_cast<size_t>(num_kept));
  const double best = candidates_.front().logit;
  for (Candidate& candidate : candidates_) candidate.weight = std::exp(candidate.logit - best);
}

void Sampler::KeepTopP() {
  double total = 0, kept = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  size_t num_kept = 0;
  while (num_kept < candidates_.size() && (num_kept == 0 || kept < options_.top_p * total)) {
    kept += candidates_[num_kept++].weight;
  }
  candidates_.resize(num_kept);
}

void Sampler::KeepMinP() {
  const auto too_small = [this](const Candidate& c) { return c.weight < options_.min_p; };
  candidates_.erase(std::find_if(candidates_.begin() + 1, candidates_.end(), too_small),
                    candidates_.end());
}

int32_t Sampler::Draw() {
  const double best = candidates_.front().logit;
  double total = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.logit - best) / options_.temperature);
    total += candidate.weight;
  }
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
  double left = uniform * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;
}

}  // namespace kvick
