#include "formats/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "formats/files_testing.h"

namespace kvick {
namespace {

std::string ParseMessage(std::string_view text) {
  const auto value = ParseJson(text, "x.json");
  return value ? "no error" : value.error().message;
}

TEST(Json, BuildsTheSameValueAsTheLibrary) {
  const std::string text =
      R"({"a":[1,-2,3.5,true,false,null,"s",[],{}],"b":{"c":{"d":[[1],[2,[3]]]},"e":18446744073709551615}})";
  const auto value = ParseJson(text, "x.json");
  ASSERT_TRUE(value.has_value()) << value.error().message;
  EXPECT_EQ(*value, nlohmann::json::parse(text));
  EXPECT_EQ(*ParseJson("7", "x.json"), nlohmann::json(7));
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_EQ(ParseMessage("{\"a\": nul}"),
            "x.json: not JSON: byte 10 and before are not understood");
  for (const char* text : {"", "{", "[1,]", "{\"a\":NaN}", "[1e999]", "[\"\xff\"]", "1 2", "{}}"}) {
    EXPECT_NE(ParseMessage(text).find("x.json: not JSON"), std::string::npos) << text;
  }
}

TEST(Json, RefusesAKeyTwiceInOneObjectOnly) {
  EXPECT_EQ(ParseMessage(R"({"a":{"b":1},"c":{"b":1}})"), "no error");
  EXPECT_EQ(ParseMessage(R"({"x":{"b":1,"b":1}})"), "x.json: an object has the key \"b\" twice");
}

TEST(Json, RefusesANestingBomb) {
  EXPECT_EQ(ParseMessage(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(ParseMessage(std::string(65, '[')), "x.json: JSON nested deeper than 64");
  EXPECT_EQ(ParseMessage(std::string(1 << 20, '[')), "x.json: JSON nested deeper than 64");
}

// Three bytes a value would be a hundred bytes of memory each.
TEST(Json, RefusesAFloodOfSmallValues) {
  std::string text = "[";
  for (int i = 0; i < 5'000'000; ++i) text += "1,";
  text += "1]";
  const auto json = ParseJson(text, "flood");
  ASSERT_FALSE(json.has_value());
  EXPECT_EQ(json.error().message, "flood: JSON of more than 5000000 values");
}

TEST(Json, ReadsAnObjectAndNothingElse) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "a.json", R"({"a":1})");
  EXPECT_EQ(ReadJsonObject(folder / "a.json")->at("a"), 1);
  testing::WriteFile(folder / "a.json", "[1]");
  EXPECT_EQ(ReadJsonObject(folder / "a.json").error().message,
            (folder / "a.json") + ": the text is an array, an object is wanted");
}

TEST(Json, ReadsAFileAndNamesAMissingOne) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "a.json", "[1]");
  EXPECT_EQ(*ReadJsonFile(folder / "a.json"), nlohmann::json::array({1}));
  EXPECT_EQ(ReadJsonFile(folder / "b.json").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace kvick
