#include "formats/python_json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace kvick {
namespace {

std::string Shown(std::string_view text) {
  PythonJsonText python(text);
  return {python.begin(), python.end()};
}

TEST(PythonJsonText, ShowsZerosOfTheSameLengthForWords) {
  EXPECT_EQ(Shown("NaN"), "0.0");
  EXPECT_EQ(Shown("[NaN,Infinity, -Infinity]"), "[0.0,0.000000, -0.000000]");
  EXPECT_EQ(Shown(R"({"a":NaN})"), R"({"a":0.0})");
}

TEST(PythonJsonText, LeavesAllElseAsItIs) {
  for (const std::string text :
       {R"("NaN")", R"(["\"", "NaN\\"])", R"("Infinity)", "NaNs", "-NaN", "+Infinity", "1NaN",
        "NaN0", "Na", "Infinit", "-", "--Infinity", "nan", "INFINITY", "", "NaN.5"}) {
    EXPECT_EQ(Shown(text), text);
  }
}

TEST(PythonJsonText, TellsWhichWordsWerePassed) {
  PythonJsonText text("[1,NaN,-Infinity]");
  std::vector<double> words;
  for (auto it = text.begin(); it != text.end(); ++it) {
    if (const auto word = text.TakeWord()) words.push_back(*word);
  }
  ASSERT_EQ(words.size(), 2u);
  EXPECT_TRUE(std::isnan(words[0]));
  EXPECT_EQ(words[1], -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace kvick
