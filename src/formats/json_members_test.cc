#include "formats/json_members.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace kvick {
namespace {

using nlohmann::json;

TEST(JsonMembers, AreReadByType) {
  const json value = {{"text", "x"}, {"yes", true}, {"int", -7}, {"float", 0.5}, {"list", {1, 2}}};
  const JsonMembers members(value);
  EXPECT_EQ(members.String("text"), "x");
  EXPECT_EQ(members.BoolOr("yes", false), true);
  EXPECT_EQ(members.Int("int", {-10, 10}), -7);
  EXPECT_EQ(members.Float("float", {0.0, 1.0}), 0.5);
  EXPECT_EQ((*members.Array("list"))->size(), 2u);
}

TEST(JsonMembers, NullCountsAsMissing) {
  const json value = {{"text", nullptr}};
  const JsonMembers members(value, "model");
  EXPECT_EQ(members.Find("text"), nullptr);
  EXPECT_TRUE(members.Has("text"));
  EXPECT_FALSE(members.Has("int"));
  EXPECT_EQ(members.StringOr("text", "fallback"), "fallback");
  EXPECT_EQ(members.IntOr("int", {}, 3), 3);
  EXPECT_EQ(members.String("text").error().message, "model.text is missing");
  EXPECT_EQ(JsonMembers(json::array({1})).Find("text"), nullptr);
}

TEST(JsonMembers, SayWhatIsExpectedAndWhatIsThere) {
  const json value = {{"a", "x"}, {"b", 2.5}, {"c", 11}, {"d", ~uint64_t{0}}};
  const JsonMembers members(value);
  EXPECT_EQ(members.Object("a").error().message, "a: expected an object, got \"x\"");
  EXPECT_EQ(members.ArrayOrNull("a").error().message, "a: expected an array, got \"x\"");
  EXPECT_EQ(members.BoolOr("a", false).error().message, "a: expected true or false, got \"x\"");
  EXPECT_EQ(members.Float("a", {0, 1}).error().message, "a: expected a number, got \"x\"");
  EXPECT_EQ(members.Float("b", {0, 1}).error().message, "b: expected 0 to 1, got 2.5");
  EXPECT_EQ(members.Int("b", {}).error().message, "b: expected an integer, got 2.5");
  EXPECT_EQ(members.Int("c", {0, 10}).error().message, "c: expected 0 to 10, got 11");
  EXPECT_EQ(members.Int("d", {0, 10}).error().message,
            "d: expected 0 to 10, got 18446744073709551615");
}

TEST(JsonMembers, RefuseANumberThatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const json value = {{"a", kInfinity}, {"b", -kInfinity}, {"c", std::nan("")}};
  const JsonMembers members(value);
  EXPECT_EQ(members.Float("a", {0, 1}).error().message,
            "a: expected a finite number, got Infinity");
  EXPECT_EQ(members.Float("b", {0, 1}).error().message,
            "b: expected a finite number, got -Infinity");
  EXPECT_EQ(members.Float("c", {0, 1}).error().message, "c: expected a finite number, got NaN");
  EXPECT_EQ(members.Int("a", {}).error().message, "a: expected an integer, got Infinity");
  EXPECT_EQ(members.BoolOr("c", true).error().message, "c: expected true or false, got NaN");
}

TEST(JsonMembers, QuoteAKeyThatIsNoWord) {
  const json value = json::object();
  EXPECT_EQ(JsonMembers(value, "tokens").String("\x1b[2J").error().message,
            "tokens.\"\\x1b[2J\" is missing");
}

}  // namespace
}  // namespace kvick
