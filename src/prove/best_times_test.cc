#include "prove/best_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kvick {
namespace {

TEST(BestTimes, KeepsTheShortestOfEachPoint) {
  BestTimes times(3);
  times.Add(std::vector<double>{10, 30, 40});
  times.Add(std::vector<double>{12, 20, 40});
  EXPECT_EQ(times.best_us(), (std::vector<double>{10, 20, 40}));
}

TEST(BestTimes, SpreadIsThatOfTheTwoShortestAtTheWorstPoint) {
  BestTimes times(2);
  times.Add(std::vector<double>{10, 20});
  EXPECT_TRUE(std::isinf(times.Spread()));
  times.Add(std::vector<double>{15, 21});
  EXPECT_DOUBLE_EQ(times.Spread(), 0.5);
  times.Add(std::vector<double>{11, 90});  // a quiet moment, and a busy one
  EXPECT_NEAR(times.Spread(), 0.1, 1e-12);
}

TEST(BestTimes, PointsThatNoPassReachedAreLeftOut) {
  BestTimes times(3);
  times.Add(std::vector<double>{10, 20});
  times.Add(std::vector<double>{10});
  EXPECT_EQ(times.best_us().size(), 2u);
  EXPECT_TRUE(std::isinf(times.Spread()));
  times.Add(std::vector<double>{10, 20});
  EXPECT_EQ(times.Spread(), 0);
}

TEST(BestTimes, OnlyAClaimThatFailsInNoiseIsNotJudged) {
  const Claim fails = {"stated", "measured", Verdict::kFails, ""};
  const Claim holds = {"stated", "measured", Verdict::kHolds, ""};
  EXPECT_EQ(JudgeTimes(fails, 0.05).verdict, Verdict::kFails);
  EXPECT_EQ(JudgeTimes(fails, 0.05).measured, "measured");
  EXPECT_EQ(JudgeTimes(holds, 3).verdict, Verdict::kHolds);
  const Claim judged = JudgeTimes(fails, 0.6);
  EXPECT_EQ(judged.verdict, Verdict::kNotJudged);
  EXPECT_NE(judged.measured.find("differ by 60 %"), std::string::npos);
  EXPECT_EQ(JudgeTimes(fails, INFINITY).verdict, Verdict::kNotJudged);
}

}  // namespace
}  // namespace kvick
