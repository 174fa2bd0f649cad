#include "measure/interleaved.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/check.h"

namespace kvick {
namespace {

Status Sleep(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  return {};
}

TEST(TimeInterleaved, TakesTurnsInEveryRound) {
  std::string turns;
  const auto contender = [&turns](char name) {
    return Contender{[&turns, name] {
                       turns += name;
                       return Sleep(1);
                     },
                     nullptr};
  };
  const Contender contenders[] = {contender('a'), contender('b')};
  const auto timings = TimeInterleaved(contenders, {.seconds = 0, .turn_ms = 3, .min_rounds = 4});
  ASSERT_TRUE(timings.has_value());
  for (const Timing& timing : *timings) EXPECT_EQ(timing.round_us.size(), 4u);
  turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
  EXPECT_EQ(turns, "ababababab");  // five rounds, of which the first does not count
}

TEST(TimeInterleaved, GoesOnUntilTheTimeIsUsed) {
  const Contender contender{[] { return Sleep(5); }, nullptr};
  const auto timings =
      TimeInterleaved({&contender, 1}, {.seconds = 0.1, .turn_ms = 0, .min_rounds = 1});
  ASSERT_TRUE(timings.has_value());
  EXPECT_GE(timings->front().median_us(), 5000);
  EXPECT_GE(timings->front().round_us.size(), 1u);
  EXPECT_LE(timings->front().round_us.size(), 20u);
}

TEST(TimeInterleaved, DoesNotTimeWhatIsPrepared) {
  int num_prepared = 0, num_passes = 0;
  const Contender contender{[&] {
                              EXPECT_EQ(++num_passes, num_prepared);
                              return Status();
                            },
                            [&] {
                              ++num_prepared;
                              return Sleep(50);
                            }};
  const auto timings =
      TimeInterleaved({&contender, 1}, {.seconds = 0, .turn_ms = 0, .min_rounds = 3});
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(num_passes, 4);
  EXPECT_LT(timings->front().median_us(), 25'000);
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

TEST(Timing, QuantilesLieBetweenTheNearestRounds) {
  const Timing timing{{40, 10, 30, 20, 50}};
  EXPECT_EQ(timing.median_us(), 30);
  EXPECT_EQ(timing.quantile_us(0), 10);
  EXPECT_EQ(timing.quantile_us(0.25), 20);
  EXPECT_EQ(timing.quantile_us(0.125), 15);
  EXPECT_EQ(timing.quantile_us(1), 50);
  EXPECT_EQ(Timing{{7}}.median_us(), 7);
}

// A machine that is twice as slow in every other round.
TEST(MedianRatio, IsThatOfTheSameRound) {
  const Timing a{{10, 20, 10, 20, 10}}, b{{5, 10, 5, 10, 5}};
  EXPECT_EQ(MedianRatio(a, b), 2);
  EXPECT_EQ(MedianRatio(b, a), 0.5);
}

}  // namespace
}  // namespace kvick
