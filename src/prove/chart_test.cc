#include "prove/chart.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvick {
namespace {

TEST(Scale, MapsTheEndsOfItsValuesToTheEndsOfItsPlaces) {
  const Scale linear = Scale::Linear({0, 8}, {100, 20});
  EXPECT_DOUBLE_EQ(linear(0), 100);
  EXPECT_DOUBLE_EQ(linear(4), 60);
  EXPECT_DOUBLE_EQ(linear(8), 20);
  const Scale log = Scale::Log({1, 1000}, {0, 300});
  EXPECT_DOUBLE_EQ(log(1), 0);
  EXPECT_DOUBLE_EQ(log(10), 100);
  EXPECT_DOUBLE_EQ(log(1000), 300);
}

TEST(Ticks, AreRoundAndFewAndInside) {
  EXPECT_EQ(RoundTicks(2043, 5), (std::vector<double>{0, 500, 1000, 1500, 2000}));
  EXPECT_EQ(RoundTicks(2043, 2), (std::vector<double>{0, 2000}));
  EXPECT_EQ(RoundTicks(8, 8), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(DecadeTicks(0.5, 100), (std::vector<double>{1, 10, 100}));
  EXPECT_EQ(DecadeTicks(2, 9), std::vector<double>());
}

TEST(SpreadApart, KeepsTheOrderAndTheGapAndTheFloor) {
  std::vector<double> places = {100, 20, 99};
  SpreadApart(places, 15, 105);
  EXPECT_EQ(places, (std::vector<double>{105, 20, 90}));
  std::vector<double> apart = {10, 50};
  SpreadApart(apart, 15, 105);
  EXPECT_EQ(apart, (std::vector<double>{10, 50}));
}

TEST(Points, AreWhatPolylineTakes) {
  const double xs[] = {1, 2.25}, ys[] = {3, 4};
  EXPECT_EQ(Points(xs, ys), "1.0,3.0 2.2,4.0 ");
}

}  // namespace
}  // namespace kvick
