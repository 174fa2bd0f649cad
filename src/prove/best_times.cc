#include "prove/best_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvick {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

}  // namespace

BestTimes::BestTimes(size_t num_points)
    : best_us_(num_points, kNone), second_us_(num_points, kNone) {}

void BestTimes::Add(std::span<const double> pass_us) {
  for (size_t i = 0; i < pass_us.size(); ++i) {
    second_us_[i] = std::min(second_us_[i], std::max(best_us_[i], pass_us[i]));
    best_us_[i] = std::min(best_us_[i], pass_us[i]);
  }
}

std::vector<double> BestTimes::best_us() const {
  return {best_us_.begin(), std::ranges::find(best_us_, kNone)};
}

double BestTimes::Spread() const {
  double spread = 0;
  for (size_t i = 0; i < best_us_.size() && best_us_[i] < kNone; ++i) {
    spread = std::max(spread, second_us_[i] / best_us_[i] - 1);
  }
  return spread;
}

Claim JudgeTimes(Claim claim, double spread) {
  if (claim.verdict != Verdict::kFails || spread <= kMaxQuietSpread) return claim;
  claim.verdict = Verdict::kNotJudged;
  claim.measured +=
      std::isinf(spread)
          ? "; measured only once, which is too little to judge"
          : fmt::format(
                "; repeated measurements differ by {:.0f} %: this machine is too busy to "
                "judge times",
                100 * spread);
  return claim;
}

}  // namespace kvick
