#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/tokenizer_hf.h"

// Tokenizer files that ask for more work or memory than a text of their size deserves.
namespace kvick {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

// Tokens a 0, b 1, space 2 and newline 3, without merges.
json SmallTokenizer() {
  return {{"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {" ", 2}, {"\n", 3}}},
            {"merges", json::array()}}}};
}

json AddedToken(int id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"normalized", false}};
}

json Replace(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

ErrorCode CreateError(const json& tokenizer) {
  const auto created = TokenizerFromHfJson(tokenizer, nullptr);
  return created ? ErrorCode::kInternal : created.error().code;
}

TEST(TokenizerLimits, ATokenDoesNotGrowWithoutBoundInTheDecoder) {
  json tokenizer = SmallTokenizer();
  tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", json::array()}};
  for (int i = 0; i < 60; ++i) tokenizer["decoder"]["decoders"].push_back(Replace("a", "aa"));
  EXPECT_EQ(CreateError(tokenizer), ErrorCode::kExhausted);
}

TEST(TokenizerLimits, AnAddedTokenDoesNotGrowWithoutBoundInTheNormalizer) {
  json tokenizer = SmallTokenizer();
  tokenizer["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(60'000, 'a')}};
  tokenizer["added_tokens"] = json::array({AddedToken(4, "<t>")});
  tokenizer["added_tokens"][0]["normalized"] = true;
  EXPECT_EQ(CreateError(tokenizer), ErrorCode::kUnsupported);
}

TEST(TokenizerLimits, ATextDoesNotGrowWithItsAddedTokens) {
  json tokenizer = SmallTokenizer();
  tokenizer["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(60'000, 'a')}};
  tokenizer["added_tokens"] = json::array({AddedToken(4, "!")});
  const auto created = TokenizerFromHfJson(tokenizer, nullptr);
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_EQ(created->Encode("b!")->size(), 60'002u);
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "b!";
  const auto ids = created->Encode(text);
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kExhausted);
}

TEST(TokenizerLimits, ATemplateHasAtMost1024Tokens) {
  json tokenizer = SmallTokenizer();
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "a"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"a", {{"ids", std::vector<int>(1025, 0)}}}}}};
  EXPECT_EQ(CreateError(tokenizer), ErrorCode::kUnsupported);
}

TEST(TokenizerLimits, WhiteSpaceBelongsToOneAddedTokenAlone) {
  json tokenizer = SmallTokenizer();
  json token = AddedToken(4, "  ");
  token["lstrip"] = token["rstrip"] = true;
  tokenizer["added_tokens"] = json::array({token});
  const auto created = TokenizerFromHfJson(tokenizer, nullptr);
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_EQ(created->Encode("a    b"), (Ids{0, 4, 1}));
}

}  // namespace
}  // namespace kvick
