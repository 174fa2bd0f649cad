// The time of a decode step over the context: with the cache, concatenated, and recomputed.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/check.h"
#include "prove/best_times.h"
#include "prove/concatenated_subject.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kFlatExplanation =
    "A decode step is timed at growing positions. With a cache, its time may grow by what reading "
    "the "
    "stored keys and values takes, and by nothing else.";
constexpr std::string_view kRecomputeExplanation =
    "The same step without a cache computes the whole text again. The difference is what a cache "
    "saves.";
constexpr std::string_view kCopyExplanation =
    "A cache that appends by concatenation copies all earlier tokens at every step. The copied "
    "rows "
    "are counted; a preallocated buffer copies none.";

constexpr int64_t kMaxPositions = 2048;
constexpr int kNumPoints = 12;
constexpr int kNumRepeats = 5;  // timed steps at a position, after one to warm up
constexpr int kTokensPerPoint = kNumRepeats + 1;
constexpr int kMaxPasses = 12;
constexpr double kCachedBudgetSeconds = 10;
// Recomputing grows with the square of the length: as many points as fit into this show it.
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

// The fastest of some single steps at each position, after one that is not timed.
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
    KVICK_RETURN_IF_ERROR(subject.Feed(text.subspan(num_fed++, 1), logits));  // warms up
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kNumRepeats; ++i) {
      KVICK_ASSIGN_OR_RETURN(const double time, Time(subject, text.subspan(num_fed++, 1), logits));
      best = std::min(best, time);
    }
    times.push_back(best);
  }
  return times;
}

// One pass over as many positions as there is time for, and more passes while time is left.
Result<BestTimes> TimeRecomputed(const ProofContext& context, SubjectOptions options,
                                 std::span<const int32_t> text,
                                 std::span<const int64_t> positions) {
  KVICK_ASSIGN_OR_RETURN(const auto subject, RecomputedSubject::Create(context.model, options));
  std::vector<float> logits(static_cast<size_t>(context.vocab_size()));
  BestTimes times(positions.size());
  const auto start = Clock::now();
  const auto has_time = [&] { return MicrosecondsSince(start) < kRecomputeBudgetSeconds * 1e6; };
  for (int pass = 0; pass < kMaxPasses && has_time(); ++pass) {
    std::vector<double> pass_us;
    for (const int64_t position : positions) {
      if (!has_time()) break;
      KVICK_RETURN_IF_ERROR(subject->Begin());
      KVICK_ASSIGN_OR_RETURN(const double time,
                             Time(*subject, text.first(static_cast<size_t>(position) + 1), logits));
      pass_us.push_back(time);
    }
    times.Add(pass_us);
  }
  return times;
}

// Least squares: microseconds per token.
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
  return fmt::format("{:.0f} us at {} tokens, {:.0f} us at {}: {:.5f} us per token",
                     times.cached_us.front(), times.positions.front(), times.cached_us.back(),
                     times.positions.back(), slope);
}

// A step must read the keys and values of all positions before it. A tenth of the read bandwidth is
// enough for that: the claim is that nothing else grows.
Claim FlatClaim(const ProofContext& context, int64_t token_bytes) {
  const StepTimes& times = context.proof.step_times;
  const double slope = Slope(times.positions, times.cached_us);
  const double reading = static_cast<double>(token_bytes) / (context.proof.read_gbps * 1e3);
  const auto range = static_cast<double>(times.positions.back() - times.positions.front());
  const double noise = 0.25 * times.cached_us.front() / range;  // a quarter of a step in all
  return {
      fmt::format("a cached step grows by at most 10 x {:.5f} us per token, the time to read its "
                  "{} bytes at {:.1f} GB/s, and noise",
                  reading, token_bytes, context.proof.read_gbps),
      Growth(times, slope), HoldsIf(slope <= 10 * reading + noise), kFlatExplanation};
}

// Where arithmetic is done one number at a time, the read bandwidth says nothing. Recomputing does.
Claim FlatBesideRecomputingClaim(const StepTimes& times) {
  const double slope = Slope(times.positions, times.cached_us);
  const double recomputed = Slope(times.positions, times.recomputed_us);
  return {fmt::format("a cached step grows by at most a tenth of what recomputing grows by: {:.5f} "
                      "us per token",
                      recomputed / 10),
          Growth(times, slope), HoldsIf(slope <= recomputed / 10), kFlatExplanation};
}

Claim RecomputedClaim(const StepTimes& times) {
  const size_t last = times.recomputed_us.size() - 1;
  const double factor = times.recomputed_us[last] / times.cached_us[last];
  const double slope = Slope(times.positions, times.recomputed_us);
  return {"the time to recompute a text grows with its length",
          fmt::format("{:.0f} us at {} tokens, {:.0f} times the cached step: {:.2f} us per token",
                      times.recomputed_us[last], times.positions[last], factor, slope),
          HoldsIf(slope > 0 && factor > 2), kRecomputeExplanation};
}

Claim CopyClaim(bool has_moved) {
  const int64_t num_copied = CountCopiedRows(8192);
  return {"growing a tensor to 8,192 tokens by concatenation copies 33,550,336 token rows",
          fmt::format("{} rows copied; the preallocated buffer {}", num_copied,
                      has_moved ? "MOVED" : "did not move, so none"),
          HoldsIf(num_copied == 33'550'336 && !has_moved), kCopyExplanation};
}

bool ComputesSlowly(const ProofContext& context) {
  return context.proof.isa == "scalar" || context.proof.isa == "amx-emulated";
}

// Passes until two agree at every position, or until the time is over. Whether they agree does not
// depend on the slope: stopping at the first pass that looks flat would choose the noise that hides
// one.
Result<BestTimes> TimeCached(const ProofContext& context, CachedSubject& cached,
                             std::span<const int32_t> text) {
  const int min_passes = ComputesSlowly(context) ? 2 : 3;
  const std::vector<int64_t>& positions = context.proof.step_times.positions;
  BestTimes times(positions.size());
  const auto start = Clock::now();
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const bool is_over = MicrosecondsSince(start) > kCachedBudgetSeconds * 1e6;
    if (pass >= min_passes && (is_over || times.Spread() <= kMaxQuietSpread / 2)) break;
    KVICK_ASSIGN_OR_RETURN(const std::vector<double> pass_us,
                           TimeSteps(cached, text, positions, context.vocab_size()));
    times.Add(pass_us);
  }
  return times;
}

std::vector<int64_t> MeasuredPositions(int64_t max_positions) {
  std::vector<int64_t> positions;
  for (int i = 0; i < kNumPoints; ++i) {
    const int64_t position = 8 + (max_positions - kTokensPerPoint - 8) * i / (kNumPoints - 1);
    if (positions.empty() || position >= positions.back() + kTokensPerPoint) {
      positions.push_back(position);
    }
  }
  return positions;
}

}  // namespace

Result<ProofSection> ProveSpeed(ProofContext& context) {
  const int64_t max_positions = std::min(kMaxPositions, context.model.info().max_positions);
  SubjectOptions options = context.Subjects();
  options.context_tokens = max_positions;
  StepTimes& times = context.proof.step_times;
  times.positions = MeasuredPositions(max_positions);
  const std::vector<int32_t> text = context.LongText(max_positions);
  KVICK_ASSIGN_OR_RETURN(const auto cached, CachedSubject::Create(context.model, options));
  const std::byte* const buffer = cached->cache().k(0).data;
  KVICK_ASSIGN_OR_RETURN(const BestTimes cached_times, TimeCached(context, *cached, text));
  KVICK_ASSIGN_OR_RETURN(const auto concatenated,
                         ConcatenatedSubject::Create(context.model, options));
  KVICK_ASSIGN_OR_RETURN(times.concatenated_us,
                         TimeSteps(*concatenated, text, times.positions, context.vocab_size()));
  KVICK_ASSIGN_OR_RETURN(const BestTimes recomputed_times,
                         TimeRecomputed(context, options, text, times.positions));
  times.cached_us = cached_times.best_us();
  times.recomputed_us = recomputed_times.best_us();

  const double spread = cached_times.Spread();
  const double larger_spread = std::max(spread, recomputed_times.Spread());
  const bool bandwidth_matters = context.proof.read_gbps > 0 && !ComputesSlowly(context);
  ProofSection section;
  section.claims.push_back(
      bandwidth_matters
          ? JudgeTimes(FlatClaim(context, cached->cache().layout().BytesPerToken()), spread)
          : JudgeTimes(FlatBesideRecomputingClaim(times), larger_spread));
  section.claims.push_back(JudgeTimes(RecomputedClaim(times), larger_spread));
  section.claims.push_back(CopyClaim(cached->cache().k(0).data != buffer));
  return section;
}

}  // namespace kvick
