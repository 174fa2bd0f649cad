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
  const auto timings = TimeInterleaved(contenders, {.seconds = 0.2, .turn_ms = 3});
  ASSERT_TRUE(timings.has_value());
  turns.erase(std::unique(turns.begin(), turns.end()), turns.end());  // a turn is several passes
  std::string expected = "ab";  // of the round that does not count
  for (size_t i = 0; i < timings->front().round_us.size(); ++i) expected += "ab";
  EXPECT_EQ(turns, expected);
  EXPECT_EQ((*timings)[1].round_us.size(), (*timings)[0].round_us.size());
  EXPECT_GE(turns.size(), 8u);
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

TEST(TimeInterleaved, CountsTheOneRoundThatTakesAllTheTime) {
  int num_passes = 0;
  const Contender contender{[&] {
                              ++num_passes;
                              return Sleep(2);
                            },
                            nullptr};
  const auto timings = TimeInterleaved({&contender, 1}, {.seconds = 1e-3, .turn_ms = 0});
  ASSERT_TRUE(timings.has_value());
  EXPECT_EQ(num_passes, 1);
  EXPECT_EQ(timings->front().round_us.size(), 1u);
}

TEST(TimeInterleaved, DoesNotTimeWhatIsPrepared) {
  int num_prepared = 0, num_passes = 0;
  const Contender contender{[&] {
                              EXPECT_EQ(++num_passes, num_prepared);
                              return Sleep(1);
                            },
                            [&] {
                              ++num_prepared;
                              return Sleep(50);
                            }};
  const auto timings = TimeInterleaved({&contender, 1}, {.seconds = 0.002, .turn_ms = 0});
  ASSERT_TRUE(timings.has_value());
  EXPECT_LT(timings->front().median_us(), 45'000);
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
