#ifndef KVICK_MEASURE_INTERLEAVED_H_
#define KVICK_MEASURE_INTERLEAVED_H_

#include <functional>
#include <span>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// Something whose time is compared with that of others.
struct Contender {
  std::function<Status()> pass;     // what is timed
  std::function<Status()> prepare;  // before each pass, not timed; may be empty
};

// One number of a contender for each round; those of all contenders belong together.
struct Timing {
  std::vector<double> round_us;  // the median pass of each round, in microseconds

  double median_us() const { return quantile_us(0.5); }
  // Between the two nearest rounds. REQUIRES: 0 <= fraction <= 1, at least one round.
  double quantile_us(double fraction) const;
};

// How many times as long a pass of `a` took as one of `b`: the median over the rounds, so that what
// slows a machine for a while slows both. REQUIRES: from one TimeInterleaved.
double MedianRatio(const Timing& a, const Timing& b);

struct InterleavedOptions {
  double seconds = 5;   // of all contenders together; what is prepared comes on top
  double turn_ms = 20;  // of a contender's passes, at least; a quarter of the longest pass, if more
  int min_rounds = 3;   // that count
};

// Times contenders turn by turn, round after round. On a machine that others use too, two times
// compare only if they were taken at the same time.
//
// The first round warms up and does not count, unless it takes all the time by itself.
// Errors: the first of a contender.
Result<std::vector<Timing>> TimeInterleaved(std::span<const Contender> contenders,
                                            const InterleavedOptions& options);

}  // namespace kvick

#endif  // KVICK_MEASURE_INTERLEAVED_H_
