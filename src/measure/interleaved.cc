#include "measure/interleaved.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace kvick {
namespace {

using Clock = std::chrono::steady_clock;

double Quantile(std::vector<double> values, double fraction) {
  KVICK_CHECK(!values.empty() && fraction >= 0 && fraction <= 1);
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

struct Turn {
  double median_us = 0;
  double total_us = 0;
};

Result<Turn> TakeTurn(const Contender& contender, double turn_us) {
  std::vector<double> passes_us;
  double total_us = 0;
  do {
    if (contender.prepare) KVICK_RETURN_IF_ERROR(contender.prepare());
    const auto start = Clock::now();
    KVICK_RETURN_IF_ERROR(contender.pass());
    passes_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    total_us += passes_us.back();
  } while (total_us < turn_us);
  return Turn{Quantile(std::move(passes_us), 0.5), total_us};
}

}  // namespace

double Timing::quantile_us(double fraction) const { return Quantile(round_us, fraction); }

double MedianRatio(const Timing& a, const Timing& b) {
  KVICK_CHECK(a.round_us.size() == b.round_us.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < a.round_us.size(); ++i) ratios.push_back(a.round_us[i] / b.round_us[i]);
  return Quantile(std::move(ratios), 0.5);
}

Result<std::vector<Timing>> TimeInterleaved(std::span<const Contender> contenders,
                                            const InterleavedOptions& options) {
  KVICK_CHECK(!contenders.empty());
  std::vector<Timing> timings(contenders.size());
  const double budget_us = options.seconds * 1e6;
  double total_us = 0, longest_us = 0, turn_us = options.turn_ms * 1e3;
  for (int round = 0; round <= options.min_rounds || total_us < budget_us; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      KVICK_ASSIGN_OR_RETURN(const Turn turn, TakeTurn(contenders[i], turn_us));
      total_us += turn.total_us;
      longest_us = std::max(longest_us, turn.median_us);
      timings[i].round_us.push_back(turn.median_us);
    }
    if (round == 0 && total_us >= budget_us) return timings;
    turn_us =
        std::max(turn_us, longest_us / 4);  // a shorter turn would sample the machine too briefly
  }
  for (Timing& timing : timings) timing.round_us.erase(timing.round_us.begin());
  return timings;
}

}  // namespace kvick
