#ifndef KVICK_MEASURE_QUIET_RATIO_H_
#define KVICK_MEASURE_QUIET_RATIO_H_

#include <string>

#include "measure/interleaved.h"

namespace kvick {

// The ratio of two times in the quiet moments of a run, and how far it can be trusted.
struct QuietRatio {
  double value = 0;
  double spread = 0;  // how far three parts of the run are apart, relative to `value`
  int num_rounds = 0;

  // Why the value cannot be trusted, as one sentence without its end; empty if it can.
  std::string Distrust() const;
};

// A spread above this is not trusted.
inline constexpr double kMaxSpread = 0.1;
// Fewer rounds than this are not trusted.
inline constexpr int kMinRounds = 3;

// The time of a pass of `a` divided by that of `b`: the median of the ratios of the quietest tenth
// of the rounds. A round is as quiet as its slices of a and b are short, each relative to the best
// decile of its own kind. So both times are from the same moments, and a machine that is slow for
// seconds, or stops for milliseconds, changes nothing as long as a tenth of the rounds is spared.
//
// Every third round makes a part of the run, which gives an estimate of its own.
//
// REQUIRES: both from the same TimeInterleaved.
QuietRatio CompareQuiet(const Timing& a, const Timing& b);

}  // namespace kvick

#endif  // KVICK_MEASURE_QUIET_RATIO_H_
