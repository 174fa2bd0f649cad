#include "formats/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
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
  for (const char* text : {"", "{", "[1,]", "[\"\xff\"]", "1 2", "{}}", "// x\n1"}) {
    EXPECT_NE(ParseMessage(text).find(": expected JSON, got "), std::string::npos) << text;
  }
}

TEST(Json, SaysLineAndColumnOfWhatItDoesNotUnderstand) {
  EXPECT_EQ(ParseMessage("{\"a\": nul}"), "x.json: line 1, column 10: expected JSON, got \"nul}\"");
  EXPECT_EQ(ParseMessage("[1\n,\n  x]"), "x.json: line 3, column 3: expected JSON, got \"x\"");
  EXPECT_EQ(ParseMessage("[1,\n"),
            "x.json: line 2, column 1: expected JSON, got the end of the text");
  EXPECT_EQ(ParseMessage("[1e999]"),
            "x.json: line 1, column 6: expected a number that fits a double, got \"1e999\"");
}

TEST(Json, ReadsTheNumbersThatPythonWritesWhereTheyMayBe) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string text =
      R"({"a":Infinity,"b":[-Infinity, NaN,0.0],"c":"NaN, \"Infinity","Infinity":-0.000000})";
  const auto value = ParseJson(text, "x.json", JsonNumbers::kPython);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  EXPECT_EQ(value->at("a"), kInfinity);
  EXPECT_EQ(value->at("b")[0], -kInfinity);
  EXPECT_TRUE(std::isnan(value->at("b")[1].get<double>()));
  EXPECT_EQ(value->at("b")[2], 0.0);
  EXPECT_EQ(value->at("c"), "NaN, \"Infinity");
  EXPECT_EQ(value->at("Infinity"), 0.0);
  EXPECT_EQ(JsonText(value->at("a")), "Infinity");
  EXPECT_EQ(JsonText(value->at("b")[0]), "-Infinity");
  EXPECT_EQ(JsonText(value->at("b")[1]), "NaN");
  EXPECT_EQ(ParseMessage(R"({"a":NaN})"), "x.json: line 1, column 6: expected JSON, got \"NaN\"");
  EXPECT_EQ(ParseMessage("[\n-Infinity]"),
            "x.json: line 2, column 2: expected JSON, got \"-Infinity\"");
}

TEST(Json, KeepsPositionsBehindTheNumbersThatPythonWrites) {
  const auto value = ParseJson("[Infinity,\n NaN, x]", "x.json", JsonNumbers::kPython);
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().message, "x.json: line 2, column 7: expected JSON, got \"x\"");
}

TEST(Json, ReadsFilesAsPythonWritesThem) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "a.json", R"({"model_max_length": Infinity})");
  const auto value = ReadJsonFile(folder / "a.json");
  ASSERT_TRUE(value.has_value()) << value.error().message;
  EXPECT_EQ(value->at("model_max_length"), std::numeric_limits<double>::infinity());
}

TEST(Json, RefusesAFileOfMoreThan100MegabytesUnread) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "config.json", "{");
  std::filesystem::resize_file(folder / "config.json", uint64_t{5} << 30);  // a hole
  EXPECT_EQ(
      ReadJsonFile(folder / "config.json").error().message,
      (folder / "config.json") + ": expected at most 100000000 bytes of JSON, got 5368709120");
}

TEST(Json, NamesALfsPointer) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "tokenizer.json",
                     "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  EXPECT_NE(ReadJsonFile(folder / "tokenizer.json").error().message.find("Git LFS pointer"),
            std::string::npos);
}

TEST(Json, RefusesAKeyTwiceInOneObjectOnly) {
  EXPECT_EQ(ParseMessage(R"({"a":{"b":1},"c":{"b":1}})"), "no error");
  EXPECT_EQ(ParseMessage(R"({"x":{"b":1,"b":1}})"), "x.json: an object has the key \"b\" twice");
}

TEST(Json, RefusesANestingBomb) {
  EXPECT_EQ(ParseMessage(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(ParseMessage(std::string(65, '[')),
            "x.json: expected JSON nested at most 64 deep, got more");
  EXPECT_EQ(ParseMessage(std::string(1 << 20, '[')),
            "x.json: expected JSON nested at most 64 deep, got more");
}

// Three bytes a value would be a hundred bytes of memory each.
TEST(Json, RefusesAFloodOfSmallValues) {
  std::string text = "[";
  for (int i = 0; i < 5'000'000; ++i) text += "1,";
  text += "1]";
  const auto json = ParseJson(text, "flood");
  ASSERT_FALSE(json.has_value());
  EXPECT_EQ(json.error().message, "flood: expected at most 5000000 values in JSON, got more");
}

TEST(Json, ReadsAnObjectAndNothingElse) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "a.json", R"({"a":1})");
  EXPECT_EQ(ReadJsonObject(folder / "a.json")->at("a"), 1);
  testing::WriteFile(folder / "a.json", "[1]");
  EXPECT_EQ(ReadJsonObject(folder / "a.json").error().message,
            (folder / "a.json") + ": expected an object, got an array");
}

TEST(Json, ReadsAFileAndNamesAMissingOne) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "a.json", "[1]");
  EXPECT_EQ(*ReadJsonFile(folder / "a.json"), nlohmann::json::array({1}));
  EXPECT_EQ(ReadJsonFile(folder / "b.json").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace kvick
