#include "engine/stop_string_filter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_testing.h"

namespace kvick {
namespace {

using Strings = std::vector<std::string>;
using Ids = std::vector<int32_t>;

constexpr int32_t kBc = 256, kAb = 257, kAbc = 258, kAa = 260, kEnd = 262;

class AnswerTextTest : public ::testing::Test {
 protected:
  // What is shown with each token until a stop, then what Finish adds.
  Strings Shown(const Strings& stops, const Ids& ids) {
    StopStringFilter answer(*opened_.model, stops);
    Strings shown;
    std::string all;
    for (const int32_t id : ids) {
      if (answer.is_stopped()) break;
      all += shown.emplace_back(answer.Append(id));
    }
    all += shown.emplace_back(answer.Finish());
    EXPECT_EQ(answer.shown(), all);
    is_stopped_ = answer.is_stopped();
    return shown;
  }

  testing::OpenedByteLevelLlama opened_;
  bool is_stopped_ = false;
};

TEST_F(AnswerTextTest, WithoutStopsEverythingIsShownAtOnce) {
  EXPECT_EQ(Shown({}, {'x', kAbc, kEnd, 'y'}), (Strings{"x", "abc", "", "y", ""}));
  EXPECT_FALSE(is_stopped_);
}

TEST_F(AnswerTextTest, AStopIsFoundWhereverTokensDivideIt) {
  for (const Ids& ids : {Ids{'x', 'a', 'b', 'c'}, Ids{'x', kAb, 'c'}, Ids{'x', 'a', kBc},
                         Ids{'x', kAbc}, Ids{'x', kAbc, 'y'}}) {
    const Strings shown = Shown({"abc"}, ids);
    EXPECT_TRUE(is_stopped_);
    EXPECT_EQ(shown.front(), "x");
    for (size_t i = 1; i < shown.size(); ++i) EXPECT_EQ(shown[i], "");
  }
}

TEST_F(AnswerTextTest, AStopInTheFirstTokenLeavesWhatStandsBeforeIt) {
  EXPECT_EQ(Shown({"bc"}, {kAbc}), (Strings{"a", ""}));
  EXPECT_TRUE(is_stopped_);
  EXPECT_EQ(Shown({"a"}, {kAbc}), (Strings{"", ""}));
  EXPECT_TRUE(is_stopped_);
}

// The first "a" of "aaab" does not begin the stop strings after all, the second one does.
TEST_F(AnswerTextTest, AStopMayBeginInsideWhatLookedLikeOne) {
  EXPECT_EQ(Shown({"aab"}, {'a', 'a', 'a', 'b'}), (Strings{"", "", "a", "", ""}));
  EXPECT_TRUE(is_stopped_);
  EXPECT_EQ(Shown({"aab"}, {kAa, kAb}), (Strings{"", "a", ""}));
  EXPECT_TRUE(is_stopped_);
  EXPECT_EQ(Shown({"abac"}, {kAb, kAb, 'a', 'c'}), (Strings{"", "ab", "", "", ""}));
  EXPECT_TRUE(is_stopped_);
}

TEST_F(AnswerTextTest, TheEarliestOfSeveralStopsWins) {
  EXPECT_EQ(Shown({"c", "b"}, {kAbc}), (Strings{"a", ""}));
  EXPECT_EQ(Shown({"b", "c"}, {kAbc}), (Strings{"a", ""}));
  EXPECT_EQ(Shown({"bc", "abc"}, {kAbc}), (Strings{"", ""}));
  EXPECT_EQ(Shown({"xyz", "y"}, {'x', 'y', 'z'}), (Strings{"", "x", ""}));  // is whole first
  EXPECT_TRUE(is_stopped_);
}

TEST_F(AnswerTextTest, WhatWaitedForAStopThatDidNotComeIsShown) {
  EXPECT_EQ(Shown({"abx"}, {'a', 'b', 'c'}), (Strings{"", "", "abc", ""}));
  EXPECT_EQ(Shown({"abx"}, {'a', 'b'}), (Strings{"", "", "ab"}));
  EXPECT_FALSE(is_stopped_);
}

TEST_F(AnswerTextTest, ACharacterIsShownWhole) {
  const std::string euro = "\xE2\x82\xAC";
  const Ids bytes = {'x', 0xE2, 0x82, 0xAC, 'y'};
  EXPECT_EQ(Shown({}, bytes), (Strings{"x", "", "", euro, "y", ""}));
  EXPECT_EQ(Shown({euro}, bytes), (Strings{"x", "", "", "", ""}));
  EXPECT_TRUE(is_stopped_);
  EXPECT_EQ(Shown({euro + "z"}, bytes), (Strings{"x", "", "", "", euro + "y", ""}));
  EXPECT_EQ(Shown({}, {'x', 0xE2, 0x82}), (Strings{"x", "", "", "\xEF\xBF\xBD"}));
  EXPECT_FALSE(is_stopped_);
}

// Against the definition, on the whole text at once.
TEST_F(AnswerTextTest, AgreesWithTheDefinitionOnRandomTexts) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const Ids ids = {'a', 'b', 'c', kBc, kAb, kAbc, kAa};
  for (int round = 0; round < 2000; ++round) {
    Strings stops(static_cast<size_t>(draw(1, 3)));
    for (std::string& stop : stops) {
      for (int i = draw(1, 5); i > 0; --i) stop += static_cast<char>('a' + draw(0, 2));
    }
    StopStringFilter answer(*opened_.model, stops);
    std::string text;
    while (!answer.is_stopped() && text.size() < 40) {
      const int32_t id = ids[static_cast<size_t>(draw(0, 6))];
      text += opened_.model->Decode(std::vector{id}).value();
      answer.Append(id);
      size_t wanted = std::string::npos, undecided = 0;
      for (const std::string& stop : stops) {
        wanted = std::min(wanted, text.find(stop));
        for (size_t num = 1; num < stop.size(); ++num) {
          if (text.ends_with(stop.substr(0, num))) undecided = std::max(undecided, num);
        }
      }
      ASSERT_EQ(answer.is_stopped(), wanted != std::string::npos) << text;
      ASSERT_EQ(answer.shown(),
                text.substr(0, answer.is_stopped() ? wanted : text.size() - undecided));
    }
    answer.Finish();
    if (!answer.is_stopped()) {
      ASSERT_EQ(answer.shown(), text);
    }
  }
}

TEST(StopStringFilter, WithoutATokenizerTheIdsAreShown) {
  const testing::OpenedRandomLlama opened(testing::SmallLlama());
  StopStringFilter answer(*opened.model, {});
  EXPECT_EQ(answer.Append(12), "12 ");
  EXPECT_EQ(answer.Append(7), "7 ");
  EXPECT_EQ(answer.Finish(), "");
}

}  // namespace
}  // namespace kvick
