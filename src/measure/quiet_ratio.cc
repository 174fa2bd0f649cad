#include "measure/quiet_ratio.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

struct Round {
  double noise = 0;
  double ratio = 0;
};

double RatioOfQuietest(std::vector<Round> rounds) {
  std::ranges::sort(rounds, {}, &Round::noise);
  Timing ratios;
  for (int64_t i = 0; i < CeilDiv(std::ssize(rounds), 10); ++i) {
    ratios.slice_us.push_back(rounds[static_cast<size_t>(i)].ratio);
  }
  return ratios.median_us();
}

}  // namespace

std::string QuietRatio::Distrust() const {
  if (num_rounds < kMinRounds) {
    return fmt::format("expected at least {} rounds, got {}", kMinRounds, num_rounds);
  }
  if (spread > kMaxSpread) {
    return fmt::format("expected parts of the run to agree within {:.0f} %, got {:.0f} %",
                       100 * kMaxSpread, 100 * spread);
  }
  return "";
}

QuietRatio CompareQuiet(const Timing& a, const Timing& b) {
  KVICK_CHECK(a.slice_us.size() == b.slice_us.size());
  const double quiet_a = a.quiet_us(), quiet_b = b.quiet_us();
  constexpr size_t kNumParts = 3;
  std::vector<Round> rounds, parts[kNumParts];
  for (size_t i = 0; i < a.slice_us.size(); ++i) {
    rounds.push_back(
        {a.slice_us[i] / quiet_a + b.slice_us[i] / quiet_b, a.slice_us[i] / b.slice_us[i]});
    parts[i % kNumParts].push_back(rounds.back());
  }
  QuietRatio ratio;
  ratio.value = RatioOfQuietest(rounds);
  ratio.num_rounds = static_cast<int>(rounds.size());
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (std::vector<Round>& part : parts) {
    if (part.empty()) continue;
    const double of_part = RatioOfQuietest(std::move(part));
    least = std::min(least, of_part);
    most = std::max(most, of_part);
  }
  ratio.spread = (most - least) / ratio.value;
  return ratio;
}

}  // namespace kvick
