#ifndef KVICK_MEASURE_INTERLEAVED_H_
#define KVICK_MEASURE_INTERLEAVED_H_

#include <functional>
#include <span>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// Code whose time is compared with that of other code.
struct Contender {
  std::function<Status()> pass;     // timed
  std::function<Status()> prepare;  // called before each pass, not timed; may be empty
};

// The times of one contender. Round i of all contenders was measured together.
struct Timing {
  std::vector<double> round_us;  // the median pass of each round, in microseconds

  double median_us() const { return quantile_us(0.5); }
  // Interpolates between the two nearest rounds. REQUIRES: 0 <= fraction <= 1, at least one round.
  double quantile_us(double fraction) const;
};

// The time of a pass of `a` divided by that of `b`: the median of the ratios of the rounds.
// Whatever slows the machine for a while slows both. REQUIRES: both from the same TimeInterleaved.
double MedianRatio(const Timing& a, const Timing& b);

struct InterleavedOptions {
  double seconds = 5;  // for all contenders together, without `prepare`
  double turn_ms =
      20;  // minimum time of a contender's turn; a quarter of the longest pass, if that is more
  int min_rounds = 3;  // rounds that count
};

// Times contenders in turns, round by round. On a shared machine, two times are comparable only if
// they were measured at the same time.
//
// The first round warms up and does not count, unless it uses up the time.
// Errors: the first error of a contender.
Result<std::vector<Timing>> TimeInterleaved(std::span<const Contender> contenders,
                                            const InterleavedOptions& options);

}  // namespace kvick

#endif  // KVICK_MEASURE_INTERLEAVED_H_
