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

// The times of one contender. Slice i of all contenders was measured in round i.
struct Timing {
  std::vector<double> slice_us;  // the mean pass of each slice, in microseconds

  // A pass in the quiet moments of the run: the best decile.
  double quiet_us() const { return quantile_us(0.1); }
  double median_us() const { return quantile_us(0.5); }
  // Interpolates between the two nearest slices. REQUIRES: 0 <= fraction <= 1, at least one slice.
  double quantile_us(double fraction) const;
};

struct InterleavedOptions {
  double seconds = 5;   // for all contenders together, without `prepare`
  double slice_ms = 5;  // minimum time of a slice; half of the longest pass, if that is more
  int min_rounds = 3;   // also where they take longer than `seconds`
  std::function<double()> now_us{};  // the clock; empty: the steady clock of the system
};

// Times contenders in short slices, one of each in a round. On a shared machine, two times are
// comparable only if they were measured at the same time. The order changes from round to round, so
// that no contender always follows the same one.
//
// The first round warms up and does not count, unless rounds are so long that `seconds` hold fewer
// than min_rounds. A short pass at the beginning of a slice finds the data of others in the caches,
// and does not count.
// Errors: the first error of a contender.
Result<std::vector<Timing>> TimeInterleaved(std::span<const Contender> contenders,
                                            const InterleavedOptions& options);

}  // namespace kvick

#endif  // KVICK_MEASURE_INTERLEAVED_H_
