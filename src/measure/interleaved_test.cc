#include "measure/interleaved.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"

namespace kvick {
namespace {

// A clock that only contenders move.
struct FakeClock {
  InterleavedOptions Options(double seconds, double slice_ms) {
    return {.seconds = seconds, .slice_ms = slice_ms, .now_us = [this] { return now_us; }};
  }

  // Passes of that time, each noted as a letter.
  Contender Passes(double ms, char letter) {
    return {[this, ms, letter]() -> Status {
              now_us += ms * 1e3;
              passes += letter;
              return {};
            },
            nullptr};
  }

  double now_us = 0;
  std::string passes;
};

TEST(TimeInterleaved, ChangesTheOrderFromRoundToRound) {
  FakeClock clock;
  const Contender contenders[] = {clock.Passes(1, 'a'), clock.Passes(1, 'b'), clock.Passes(1, 'c')};
  const auto timings = TimeInterleaved(contenders, clock.Options(0.018, 1));
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(timings->front().slice_us, std::vector<double>(5, 1000.0));  // the first warms up
  std::set<std::string> orders;
  for (size_t i = 0; i < clock.passes.size(); i += 3) orders.insert(clock.passes.substr(i, 3));
  EXPECT_EQ(orders, (std::set<std::string>{"abc", "acb", "bac", "bca", "cab", "cba"}));
}

// A pass at the beginning, whose data are not in the caches, and then as many as a slice takes.
TEST(TimeInterleaved, ASliceIsTheMeanOfItsPasses) {
  FakeClock clock;
  int num_passes = 0;
  const Contender contender{[&]() -> Status {
                              const bool is_first = num_passes++ % 21 == 0;
                              clock.now_us += is_first ? 190 : num_passes % 2 == 0 ? 90 : 110;
                              return {};
                            },
                            nullptr};
  const auto timings = TimeInterleaved({&contender, 1}, clock.Options(0.1, 2));
  ASSERT_TRUE(timings.has_value());
  for (const double us : timings->front().slice_us) EXPECT_DOUBLE_EQ(us, 100);
}

TEST(TimeInterleaved, SlicesAreHalfAsLongAsTheLongestPass) {
  FakeClock clock;
  const Contender contenders[] = {clock.Passes(40, 'a'), clock.Passes(2.5, 'b')};
  ASSERT_TRUE(TimeInterleaved(contenders, clock.Options(1, 1)).has_value());
  EXPECT_NE(clock.passes.find("a" + std::string(8, 'b') + "a"), std::string::npos);
  EXPECT_EQ(clock.passes.find(std::string(17, 'b')), std::string::npos);
}

TEST(TimeInterleaved, GoesOnUntilTheTimeIsUsed) {
  FakeClock clock;
  const Contender contender = clock.Passes(5, 'a');
  const auto timings = TimeInterleaved({&contender, 1}, clock.Options(0.1, 0));
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(clock.now_us, 100e3);
  EXPECT_EQ(timings->front().slice_us.size(), 19u);
}

TEST(TimeInterleaved, CountsTheFirstRoundWhereRoundsAreLong) {
  FakeClock clock;
  const Contender contender = clock.Passes(900, 'a');
  const auto timings = TimeInterleaved({&contender, 1}, clock.Options(1, 5));
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(clock.passes, "aaa");
  EXPECT_EQ(timings->front().slice_us.size(), 3u);
}

TEST(TimeInterleaved, UsesTheClockOfTheSystem) {
  const Contender contender{[] {
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                              return Status();
                            },
                            nullptr};
  const auto timings = TimeInterleaved({&contender, 1}, {.seconds = 0.02, .slice_ms = 0});
  ASSERT_TRUE(timings.has_value());
  EXPECT_GE(timings->front().quiet_us(), 5000);
}

TEST(TimeInterleaved, DoesNotTimeWhatIsPrepared) {
  FakeClock clock;
  int num_prepared = 0, num_passes = 0;
  const Contender contender{[&]() -> Status {
                              EXPECT_EQ(++num_passes, num_prepared);
                              clock.now_us += 1000;
                              return {};
                            },
                            [&]() -> Status {
                              ++num_prepared;
                              clock.now_us += 50'000;
                              return {};
                            }};
  const auto timings = TimeInterleaved({&contender, 1}, clock.Options(0.002, 0));
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(timings->front().median_us(), 1000);
}

TEST(TimeInterleaved, HandsOnTheErrorOfAContender) {
  const Status failed = Fail(ErrorCode::kExhausted, "no room");
  const Contender in_pass{[&] { return failed; }, nullptr};
  const Contender in_prepare{[] { return Status(); }, [&] { return failed; }};
  for (const Contender& contender : {in_pass, in_prepare}) {
    const auto timings = TimeInterleaved({&contender, 1}, {});
    ASSERT_FALSE(timings.has_value());
    EXPECT_EQ(timings.error().message, "no room");
  }
}

TEST(Timing, QuantilesLieBetweenTheNearestSlices) {
  const Timing timing{{40, 10, 30, 20, 50}};
  EXPECT_EQ(timing.median_us(), 30);
  EXPECT_EQ(timing.quantile_us(0), 10);
  EXPECT_EQ(timing.quantile_us(0.25), 20);
  EXPECT_EQ(timing.quantile_us(0.125), 15);
  EXPECT_EQ(timing.quantile_us(1), 50);
  EXPECT_EQ(timing.quiet_us(), 14);
  EXPECT_EQ(Timing{{7}}.median_us(), 7);
}

}  // namespace
}  // namespace kvick
