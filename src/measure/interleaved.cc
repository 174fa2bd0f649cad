#include "measure/interleaved.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.h"

namespace kvick {
namespace {

double SteadyUs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// One run of TimeInterleaved.
class Rounds {
 public:
  Rounds(std::span<const Contender> contenders, const InterleavedOptions& options)
      : contenders_(contenders),
        options_(options),
        now_us_(options.now_us ? options.now_us : SteadyUs),
        best_pass_us_(contenders.size(), std::numeric_limits<double>::infinity()),
        timings_(contenders.size()) {}

  Result<std::vector<Timing>> Run();

 private:
  Status TakeRound();
  Result<double> TakeSlice(size_t index);
  Result<double> TakePass(size_t index);
  double slice_us() const;
  int num_rounds() const { return static_cast<int>(timings_.front().slice_us.size()); }

  std::span<const Contender> contenders_;
  const InterleavedOptions& options_;
  std::function<double()> now_us_;
  std::vector<double> best_pass_us_;  // of each contender
  std::vector<Timing> timings_;
  double total_us_ = 0;
  int64_t num_taken_ = 0;  // rounds, those that do not count too
};

Result<std::vector<Timing>> Rounds::Run() {
  const double budget_us = options_.seconds * 1e6;
  KVICK_RETURN_IF_ERROR(TakeRound());
  const bool are_short = total_us_ * (options_.min_rounds + 1) <= budget_us;
  if (are_short) {
    for (Timing& timing : timings_) timing.slice_us.clear();
  }
  while (num_rounds() < options_.min_rounds || total_us_ < budget_us) {
    KVICK_RETURN_IF_ERROR(TakeRound());
  }
  return std::move(timings_);
}

// Forwards and backwards, each time beginning with another contender.
Status Rounds::TakeRound() {
  const size_t num = contenders_.size();
  const size_t first = static_cast<size_t>(num_taken_ / 2) % num;
  const bool is_forward = num_taken_ % 2 == 0;
  for (size_t i = 0; i < num; ++i) {
    const size_t index = (first + (is_forward ? i : num - i)) % num;
    KVICK_ASSIGN_OR_RETURN(const double pass_us, TakeSlice(index));
    timings_[index].slice_us.push_back(pass_us);
  }
  ++num_taken_;
  return {};
}

// A shorter slice than half of the longest pass would see less of the machine than that pass does.
double Rounds::slice_us() const {
  double longest_us = 0;
  for (const double us : best_pass_us_) {
    if (std::isfinite(us)) longest_us = std::max(longest_us, us);
  }
  return std::max(options_.slice_ms * 1e3, longest_us / 2);
}

Result<double> Rounds::TakeSlice(size_t index) {
  constexpr double kShortPart = 0.1;  // of a slice
  const double slice_us = this->slice_us();
  KVICK_ASSIGN_OR_RETURN(const double first_us, TakePass(index));
  const bool is_short = first_us < kShortPart * slice_us;
  double passes_us = is_short ? 0 : first_us;
  int64_t num_passes = is_short ? 0 : 1;
  while (passes_us < slice_us) {
    KVICK_ASSIGN_OR_RETURN(const double pass_us, TakePass(index));
    passes_us += pass_us;
    ++num_passes;
  }
  return passes_us / static_cast<double>(num_passes);
}

Result<double> Rounds::TakePass(size_t index) {
  const Contender& contender = contenders_[index];
  if (contender.prepare) KVICK_RETURN_IF_ERROR(contender.prepare());
  const double start_us = now_us_();
  KVICK_RETURN_IF_ERROR(contender.pass());
  const double pass_us = now_us_() - start_us;
  best_pass_us_[index] = std::min(best_pass_us_[index], pass_us);
  total_us_ += pass_us;
  return pass_us;
}

}  // namespace

double Timing::quantile_us(double fraction) const {
  KVICK_CHECK(!slice_us.empty() && fraction >= 0 && fraction <= 1);
  std::vector<double> sorted = slice_us;
  std::sort(sorted.begin(), sorted.end());
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

Result<std::vector<Timing>> TimeInterleaved(std::span<const Contender> contenders,
                                            const InterleavedOptions& options) {
  KVICK_CHECK(!contenders.empty() && options.min_rounds >= 1);
  return Rounds(contenders, options).Run();
}

}  // namespace kvick
