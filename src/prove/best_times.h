#ifndef KVICK_PROVE_BEST_TIMES_H_
#define KVICK_PROVE_BEST_TIMES_H_

#include <span>
#include <vector>

#include "prove/proof.h"

namespace kvick {

// The two shortest times at each of some points. Noise only adds time, so the shortest are those of
// quiet moments; where two passes agree, both were quiet.
class BestTimes {
 public:
  explicit BestTimes(size_t num_points);

  // The times of a pass, which may end before the last point.
  void Add(std::span<const double> pass_us);

  // Of the points that any pass reached.
  std::vector<double> best_us() const;
  // How far the two shortest times differ at the worst point that was reached: 0.2 is 20 %.
  // Infinite where a point was timed only once.
  double Spread() const;

 private:
  std::vector<double> best_us_, second_us_;
};

// Passes that differ by more than this were not all quiet.
inline constexpr double kMaxQuietSpread = 0.2;

// A claim about times, as far as it can be judged: times that are too long for it show nothing if
// `spread` says that the machine was busy. A claim that holds, holds all the same.
Claim JudgeTimes(Claim claim, double spread);

}  // namespace kvick

#endif  // KVICK_PROVE_BEST_TIMES_H_
