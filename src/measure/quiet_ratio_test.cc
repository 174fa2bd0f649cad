#include "measure/quiet_ratio.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "base/check.h"

namespace kvick {
namespace {

// What was taken for the ratio before: the median over all rounds.
double MedianOfRatios(const Timing& a, const Timing& b) {
  Timing ratios;
  for (size_t i = 0; i < a.slice_us.size(); ++i) {
    ratios.slice_us.push_back(a.slice_us[i] / b.slice_us[i]);
  }
  return ratios.median_us();
}

// A shared machine in time that only contenders pass. Its memory slows down for a while, and all of
// it stops, at random times of a given mean.
class NoisyMachine {
 public:
  struct Noise {
    double quiet_ms = 1e9, slow_ms = 0;  // means
    double slowdown = 2;                 // of memory
    double between_stops_ms = 1e9;       // mean
    double stop_ms = 0;
  };

  explicit NoisyMachine(const Noise& noise)
      : noise_(noise),
        change_us_(Random(noise.quiet_ms)),
        stop_us_(Random(noise.between_stops_ms)) {}

  // A pass reads for one time and multiplies for another, one after the other.
  Contender Reader(double us) { return Passes(us, 0); }
  Contender Multiplier(double us) { return Passes(0, us); }
  Contender Passes(double read_us, double multiply_us) {
    return {[this, read_us, multiply_us]() -> Status {
              Go(read_us, noise_.slowdown);
              Go(multiply_us, 1);
              return {};
            },
            nullptr};
  }

  // The timings of a row of that many seconds, the limit first.
  std::vector<Timing> Time(const Contender& limit, const Contender& row, double seconds) {
    const Contender contenders[] = {limit, row};
    return TimeInterleaved(contenders, {.seconds = seconds, .now_us = [this] { return now_us_; }})
        .value();
  }

 private:
  static constexpr double kStepUs = 20;

  double Random(double mean_ms) {
    return std::exponential_distribution<double>(1 / (mean_ms * 1e3 + 1e-3))(random_);
  }

  void Go(double us, double slowdown) {
    while (us > 0) {
      const double step_us = us < kStepUs ? us : kStepUs;
      us -= step_us;
      now_us_ += step_us * (is_slow_ ? slowdown : 1);
      if (now_us_ >= stop_us_) {
        now_us_ += noise_.stop_ms * 1e3;
        stop_us_ = now_us_ + Random(noise_.between_stops_ms);
      }
      if (now_us_ >= change_us_) {
        is_slow_ = !is_slow_;
        change_us_ = now_us_ + Random(is_slow_ ? noise_.slow_ms : noise_.quiet_ms);
      }
    }
  }

  Noise noise_;
  std::mt19937 random_{1};
  double now_us_ = 0;
  bool is_slow_ = false;
  double change_us_, stop_us_;
};

TEST(QuietRatio, OfAQuietMachine) {
  NoisyMachine machine({});
  const auto timings = machine.Time(machine.Reader(4000), machine.Reader(5000), 1);
  const QuietRatio share = CompareQuiet(timings[0], timings[1]);
  EXPECT_DOUBLE_EQ(share.value, 0.8);
  EXPECT_LT(share.spread, 1e-9);
  EXPECT_EQ(share.Distrust(), "");
}

// Neighbours read from memory for most of the time. A kernel that multiplies does not mind, the
// plain read beside it takes twice as long, and seems to be the slower of the two.
TEST(QuietRatio, OfAMachineWhoseMemoryIsSlowForMostOfTheTime) {
  NoisyMachine machine({.quiet_ms = 30, .slow_ms = 70});
  const auto timings = machine.Time(machine.Reader(4000), machine.Passes(2000, 4000), 4);
  EXPECT_GT(MedianOfRatios(timings[0], timings[1]), 0.95);
  const QuietRatio share = CompareQuiet(timings[0], timings[1]);
  EXPECT_NEAR(share.value, 4000.0 / 6000, 0.01);
  EXPECT_EQ(share.Distrust(), "");
}

TEST(QuietRatio, OfAMachineThatStopsEveryNowAndThen) {
  NoisyMachine machine({.between_stops_ms = 8, .stop_ms = 10});
  const auto timings = machine.Time(machine.Multiplier(5000), machine.Multiplier(9000), 4);
  const QuietRatio share = CompareQuiet(timings[0], timings[1]);
  EXPECT_NEAR(share.value, 5000.0 / 9000, 0.005);
  EXPECT_EQ(share.Distrust(), "");
}

// The machine changes once, after a twentieth or most of the row.
TEST(QuietRatio, OfAMachineThatChangesForMinutes) {
  for (const double quiet_ms : {100, 800, 1500}) {
    NoisyMachine machine({.quiet_ms = quiet_ms, .slow_ms = 1e6, .slowdown = 2.5});
    const auto timings = machine.Time(machine.Reader(4000), machine.Reader(5000), 2);
    const QuietRatio share = CompareQuiet(timings[0], timings[1]);
    EXPECT_NEAR(share.value, 0.8, 0.01) << quiet_ms;
  }
}

// Stops so often that no round is spared: nobody can say what a quiet machine would show.
TEST(QuietRatio, OfAMachineThatIsNeverQuietIsNotTrusted) {
  NoisyMachine machine({.between_stops_ms = 3, .stop_ms = 9});
  const auto timings = machine.Time(machine.Multiplier(8000), machine.Multiplier(60'000), 1);
  EXPECT_NE(CompareQuiet(timings[0], timings[1]).Distrust(), "");
}

TEST(QuietRatio, OfTooFewRoundsIsNotTrusted) {
  const Timing two{{10, 10}}, three{{10, 10, 10}};
  EXPECT_EQ(CompareQuiet(two, two).Distrust(), "expected at least 3 rounds, got 2");
  EXPECT_EQ(CompareQuiet(three, three).Distrust(), "");
}

// Three long passes, one of which was disturbed.
TEST(QuietRatio, OfLongRoundsIsThatOfTheQuietest) {
  const QuietRatio share = CompareQuiet(Timing{{10, 10.2, 10.1}}, Timing{{20, 31, 20.4}});
  EXPECT_DOUBLE_EQ(share.value, 0.5);
  EXPECT_NEAR(share.spread, (0.5 - 10.2 / 31) / 0.5, 1e-12);
  EXPECT_EQ(share.Distrust(), "expected parts of the run to agree within 10 %, got 34 %");
}

}  // namespace
}  // namespace kvick
