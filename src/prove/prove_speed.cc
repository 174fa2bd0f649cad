// The time of a decode step over the context: with the cache, recomputed, and concatenated.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/check.h"
#include "prove/concatenated_subject.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr int64_t kMaxPositions = 2048;
constexpr int kNumPoints = 12;
constexpr int kNumRepeats = 5;
// Whole texts anew grow with the square of the length: this many points show it.
constexpr double kRecomputeBudgetSeconds = 6;

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Microseconds of feeding `tokens`.
Result<double> Time(Subject& subject, std::span<const int32_t> tokens, std::span<float> logits) {
  const auto start = Clock::now();
  KVICK_RETURN_IF_ERROR(subject.Feed(tokens, logits));
  return MicrosecondsSince(start);
}

// A text that goes on and on, for its time alone.
std::vector<int32_t> LongText(const ProofContext& context, int64_t num_tokens) {
  std::vector<int32_t> text;
  while (static_cast<int64_t>(text.size()) < num_tokens) {
    for (const auto& prompt : context.prompts)
      text.insert(text.end(), prompt.begin(), prompt.end());
  }
  text.resize(static_cast<size_t>(num_tokens));
  return text;
}

// The fastest of some single steps behind each position: noise only ever adds.
Result<std::vector<double>> TimeSteps(Subject& subject, std::span<const int32_t> text,
                                      std::span<const int64_t> positions, int64_t vocab_size) {
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  std::vector<double> times;
  size_t num_fed = 0;
  KVICK_RETURN_IF_ERROR(subject.Begin());
  for (const int64_t position : positions) {
    const size_t before = static_cast<size_t>(position) - num_fed;
    KVICK_RETURN_IF_ERROR(subject.Feed(text.subspan(num_fed, before), logits));
    num_fed += before;
    double best = 1e18;
    for (int i = 0; i < kNumRepeats; ++i) {
      KVICK_ASSIGN_OR_RETURN(const double time, Time(subject, text.subspan(num_fed++, 1), logits));
      best = std::min(best, time);
    }
    times.push_back(best);
  }
  return times;
}

Result<std::vector<double>> TimeRecomputed(const ProofContext& context, SubjectOptions options,
                                           std::span<const int32_t> text,
                                           std::span<const int64_t> positions) {
  KVICK_ASSIGN_OR_RETURN(const auto subject, RecomputedSubject::Create(context.model, options));
  std::vector<float> logits(static_cast<size_t>(context.vocab_size()));
  std::vector<double> times;
  const auto start = Clock::now();
  for (const int64_t position : positions) {
    if (MicrosecondsSince(start) > kRecomputeBudgetSeconds * 1e6) break;
    KVICK_RETURN_IF_ERROR(subject->Begin());
    KVICK_ASSIGN_OR_RETURN(const double time,
                           Time(*subject, text.first(static_cast<size_t>(position) + 1), logits));
    times.push_back(time);
  }
  return times;
}

// Least squares: microseconds a token.
double Slope(std::span<const int64_t> positions, std::span<const double> times) {
  const auto num = static_cast<double>(times.size());
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    mean_x += static_cast<double>(positions[i]) / num;
    mean_y += times[i] / num;
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const double x = static_cast<double>(positions[i]) - mean_x;
    xy += x * (times[i] - mean_y);
    xx += x * x;
  }
  return xx > 0 ? xy / xx : 0;
}

std::string Growth(const StepTimes& times, double slope) {
  return fmt::format("{:.0f} us at {} tokens, {:.0f} us at {}: {:.5f} us a token",
                     times.cached_us.front(), times.positions.front(), times.cached_us.back(),
                     times.positions.back(), slope);
}

// A step must read the keys and values of all positions before it. Reading them at a tenth of what
// memory gives is "flat": what is asked is that nothing else grows.
Claim FlatClaim(const ProofContext& context, const StepTimes& times, int64_t token_bytes) {
  const double slope = Slope(times.positions, times.cached_us);
  const double physics = static_cast<double>(token_bytes) / (context.proof.read_gbps * 1e3);
  const auto span = static_cast<double>(times.positions.back() - times.positions.front());
  const double noise = 0.25 * times.cached_us.front() / span;  // a quarter of a step in all
  return {
      fmt::format("a cached step grows by no more than reading its {} bytes a token: 10 x {:.5f} "
                  "us at {:.1f} GB/s, and noise",
                  token_bytes, physics, context.proof.read_gbps),
      Growth(times, slope), slope <= 10 * physics + noise};
}

// Where arithmetic is done one number at a time, memory is no measure: recomputing is.
Claim FlatBesideRecomputingClaim(const StepTimes& times) {
  const double slope = Slope(times.positions, times.cached_us);
  const double recomputed = Slope(times.positions, times.recomputed_us);
  return {
      fmt::format("a cached step grows by no more than a tenth of what recomputing does: {:.5f} "
                  "us a token",
                  recomputed / 10),
      Growth(times, slope), slope <= recomputed / 10};
}

Claim RecomputedClaim(const StepTimes& times) {
  const size_t last = times.recomputed_us.size() - 1;
  const double factor = times.recomputed_us[last] / times.cached_us[last];
  return {"recomputing grows with the text",
          fmt::format("{:.0f} us at {} tokens, {:.0f} times the cached step: {:.2f} us a token",
                      times.recomputed_us[last], times.positions[last], factor,
                      Slope(times.positions, times.recomputed_us)),
          Slope(times.positions, times.recomputed_us) > 0 && factor > 2};
}

bool ComputesSlowly(const ProofContext& context) {
  return context.proof.isa == "scalar" || context.proof.isa == "amx-emulated";
}

// The fastest of each position in some passes, for noise only ever adds. How many does not depend
// on what they show: stopping at the first that looks flat would choose the noise that hides a
// slope.
Status TimeCached(ProofContext& context, CachedSubject& cached, std::span<const int32_t> text) {
  const int num_passes = ComputesSlowly(context) ? 1 : 3;
  StepTimes& times = context.proof.step_times;
  times.cached_us.assign(times.positions.size(), std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < num_passes; ++pass) {
    KVICK_ASSIGN_OR_RETURN(const std::vector<double> pass_us,
                           TimeSteps(cached, text, times.positions, context.vocab_size()));
    std::ranges::transform(times.cached_us, pass_us, times.cached_us.begin(),
                           [](double x, double y) { return std::min(x, y); });
  }
  return {};
}

}  // namespace

Result<ProofSection> ProveSpeed(ProofContext& context) {
  const int64_t most = std::min(kMaxPositions, context.model.info().max_positions);
  SubjectOptions options = context.Subjects();
  options.context_tokens = most;
  StepTimes& times = context.proof.step_times;
  for (int i = 0; i < kNumPoints; ++i) {
    const int64_t position = 8 + (most - kNumRepeats - 8) * i / (kNumPoints - 1);
    if (times.positions.empty() || position >= times.positions.back() + kNumRepeats) {
      times.positions.push_back(position);
    }
  }
  const std::vector<int32_t> text = LongText(context, most);
  KVICK_ASSIGN_OR_RETURN(const auto cached, CachedSubject::Create(context.model, options));
  const std::byte* const buffer = cached->cache().k(0).data;
  KVICK_RETURN_IF_ERROR(TimeCached(context, *cached, text));
  KVICK_ASSIGN_OR_RETURN(const auto concatenated,
                         ConcatenatedSubject::Create(context.model, options));
  KVICK_ASSIGN_OR_RETURN(times.concatenated_us,
                         TimeSteps(*concatenated, text, times.positions, context.vocab_size()));
  KVICK_ASSIGN_OR_RETURN(times.recomputed_us,
                         TimeRecomputed(context, options, text, times.positions));

  const int64_t token_bytes = cached->cache().layout().BytesPerToken();
  const int64_t num_copied = CountCopiedRows(8192);
  const bool stayed = cached->cache().k(0).data == buffer;
  return ProofSection{
      {},
      {},
      {ComputesSlowly(context) ? FlatBesideRecomputingClaim(times)
                               : FlatClaim(context, times, token_bytes),
       RecomputedClaim(times),
       {"growing a tensor to 8,192 tokens by concatenation copies 33,550,336 token rows",
        fmt::format("{} rows copied; the preallocated buffer {}", num_copied,
                    stayed ? "stayed where it was, so none" : "MOVED"),
        num_copied == 33'550'336 && stayed}}};
}

}  // namespace kvick
