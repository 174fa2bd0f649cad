#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/fixed_math.h"

namespace kvick {

namespace {

// A bias, or none, for each of the tokens, checked. Errors: invalid_argument.
Status CheckLogitBias(std::span<const LogitBias> biases, int64_t vocab_size) {
  std::vector<int32_t> forbidden;
  for (const LogitBias& bias : biases) {
    if (bias.token < 0 || bias.token >= vocab_size) {
      return Fail(ErrorCode::kInvalidArgument,
                  "sampling: logit_bias: expected a token from 0 to {}, got {}", vocab_size - 1,
                  bias.token);
    }
    if (bias.bias == -INFINITY) {
      forbidden.push_back(bias.token);
    } else if (!(std::abs(bias.bias) <= static_cast<float>(kMaxLogitBias))) {
      return Fail(ErrorCode::kInvalidArgument,
                  "sampling: logit_bias of token {}: expected {} to {} or -inf, got {}", bias.token,
                  -kMaxLogitBias, kMaxLogitBias, bias.bias);
    }
  }
  if (std::ssize(forbidden) < vocab_size) return {};
  std::ranges::sort(forbidden);
  const auto end = std::unique(forbidden.begin(), forbidden.end());
  if (end - forbidden.begin() < vocab_size) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "sampling: logit_bias: expected a token that is not forbidden, got -inf for all {}",
              vocab_size);
}

int64_t NumNans(std::span<const float> logits) {
  int64_t num_nans = 0;
  for (const float logit : logits) num_nans += std::isnan(logit) ? 1 : 0;
  return num_nans;
}

int32_t FirstNan(std::span<const float> logits) {
  const auto first = std::ranges::find_if(logits, [](float logit) { return std::isnan(logit); });
  return static_cast<int32_t>(first - logits.begin());
}

}  // namespace

Status CheckSampling(const SamplingOptions& options, int64_t vocab_size) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: temperature: expected 0 or more, got {}",
                options.temperature);
  }
  if (options.top_k < -1) {
    return Fail(ErrorCode::kInvalidArgument,
                "sampling: top_k: expected 1 or more, or 0 or -1 for all, got {}", options.top_k);
  }
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: top_p: expected 0 to 1, got {}",
                options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return Fail(ErrorCode::kInvalidArgument, "sampling: min_p: expected 0 to 1, got {}",
                options.min_p);
  }
  if (!(options.repetition_penalty >= 0.01 && options.repetition_penalty <= 100)) {
    return Fail(ErrorCode::kInvalidArgument,
                "sampling: repetition_penalty: expected 0.01 to 100, got {}",
                options.repetition_penalty);
  }
  return CheckLogitBias(options.logit_bias, vocab_size);
}

Result<int32_t> ArgMax(std::span<const float> logits) {
  float best_logit = -INFINITY;
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > best_logit)) continue;  // or NaN
    best_logit = logits[i];
    best = static_cast<int32_t>(i);
  }
  if (best >= 0) return best;
  if (const int64_t num_nans = NumNans(logits); num_nans > 0) {
    return Fail(ErrorCode::kCorrupt,
                "sampling: expected a token to choose from, got NaN for {} of {} logits (the first "
                "is token {}) and -inf for the others",
                num_nans, logits.size(), FirstNan(logits));
  }
  return Fail(ErrorCode::kInvalidArgument,
              "sampling: expected a token to choose from, got -inf for all {} logits",
              logits.size());
}

Sampler::Sampler(SamplingOptions options) : options_(std::move(options)), random_(options_.seed) {}

Result<int32_t> Sampler::Sample(std::span<const float> logits, std::span<const int32_t> token_ids) {
  CountNans(logits);
  if (options_.repetition_penalty != 1 || !options_.logit_bias.empty()) {
    logits = Adjusted(logits, token_ids);
  }
  KVICK_ASSIGN_OR_RETURN(const int32_t best, ArgMax(logits));
  if (options_.temperature == 0) return best;
  Collect(logits);
  KeepTopP();
  KeepMinP();
  return Draw();
}

void Sampler::CountNans(std::span<const float> logits) {
  const int64_t index = num_sampled_++;
  const int64_t num_nans = NumNans(logits);
  if (num_nans == 0) return;
  if (!nan_logits_) nan_logits_ = {0, FirstNan(logits), index};
  nan_logits_->count += num_nans;
}

std::span<const float> Sampler::Adjusted(std::span<const float> logits,
                                         std::span<const int32_t> token_ids) {
  adjusted_.assign(logits.begin(), logits.end());
  for (const LogitBias& bias : options_.logit_bias) {
    adjusted_[static_cast<size_t>(bias.token)] += bias.bias;
  }
  if (options_.repetition_penalty == 1) return adjusted_;
  has_occurred_.resize(logits.size());
  for (; num_counted_tokens_ < token_ids.size(); ++num_counted_tokens_) {
    has_occurred_[static_cast<size_t>(token_ids[num_counted_tokens_])] = true;
  }
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    if (!has_occurred_[i]) continue;
    adjusted_[i] = adjusted_[i] > 0 ? adjusted_[i] / penalty : adjusted_[i] * penalty;
  }
  return adjusted_;
}

// Sorted by logit, equals by id. No two candidates are equal, so that any sort gives this order,
// and the sums over candidates, which follow it, do not depend on the library.
void Sampler::Collect(std::span<const float> logits) {
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == -INFINITY) continue;
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 0});
  }
  const auto num = static_cast<int64_t>(candidates_.size());
  const int64_t num_kept = options_.top_k <= 0 ? num : std::min(options_.top_k, num);
  const auto is_before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  if (num_kept == num) {
    std::sort(candidates_.begin(), candidates_.end(), is_before);
  } else {
    std::partial_sort(candidates_.begin(), candidates_.begin() + num_kept, candidates_.end(),
                      is_before);
    candidates_.resize(static_cast<size_t>(num_kept));
  }
  if (candidates_.front().logit == INFINITY) {
    std::erase_if(candidates_, [](const Candidate& c) { return c.logit != INFINITY; });
    for (Candidate& candidate : candidates_) candidate.logit = 0;  // all the same
  }
  const double best = candidates_.front().logit;
  for (Candidate& candidate : candidates_) candidate.weight = FixedExp(candidate.logit - best);
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
    candidate.weight = FixedExp((candidate.logit - best) / options_.temperature);
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
