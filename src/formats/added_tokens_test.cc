#include "formats/added_tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace kvick {
namespace {

AddedToken Token(int32_t id, std::string content) {
  AddedToken token;
  token.id = id;
  token.content = std::move(content);
  return token;
}

// "ab|<T>=1|c"
std::string Parts(const std::vector<AddedToken>& tokens, std::string_view text,
                  SpecialTokens specials = SpecialTokens::kAsTokens) {
  std::string result;
  for (const auto& part : AddedTokenFinder::Create(tokens)->Find(text, specials)) {
    result += result.empty() ? "" : "|";
    result += text.substr(part.begin, part.end - part.begin);
    if (part.id != kNoToken) result += fmt::format("={}", part.id);
  }
  return result;
}

TEST(AddedTokens, TheLeftmostAndThereTheLongestMatches) {
  const std::vector<AddedToken> tokens = {Token(0, "<a"), Token(1, "<a>"), Token(2, "<a><"),
                                          Token(3, "a>")};
  EXPECT_EQ(Parts(tokens, "x<a>"), "x|<a>=1");
  EXPECT_EQ(Parts(tokens, "a><a><b"), "a>=3|<a><=2|b");
  EXPECT_EQ(Parts(tokens, "<"), "<");
  EXPECT_EQ(Parts(tokens, ""), "");
  EXPECT_EQ(Parts({Token(4, "")}, "ab"), "ab");
  EXPECT_EQ(Parts({Token(5, "x"), Token(6, "x")}, "x"), "x=5");
}

std::string RandomLetters(std::mt19937& random, size_t max_size) {
  std::string text(random() % (max_size + 1), 'a');
  for (char& c : text) c = "ab\xC3"[random() % 3];
  return text;
}

// The longest token at the start of `text`, by trying all.
const AddedToken* LongestOf(const std::vector<AddedToken>& tokens, std::string_view text,
                            SpecialTokens specials) {
  const AddedToken* longest = nullptr;
  for (const AddedToken& token : tokens) {
    if (token.content.empty() || !text.starts_with(token.content)) continue;
    if (token.special && specials == SpecialTokens::kAsText) continue;
    if (!longest || token.content.size() > longest->content.size()) longest = &token;
  }
  return longest;
}

// What Parts gives for tokens without flags, by trying all.
std::string SlowParts(const std::vector<AddedToken>& tokens, std::string_view text,
                      SpecialTokens specials) {
  std::vector<std::string> parts;
  bool in_stretch = false;
  for (size_t pos = 0; pos < text.size();) {
    const AddedToken* token = LongestOf(tokens, text.substr(pos), specials);
    if (token) {
      parts.push_back(fmt::format("{}={}", token->content, token->id));
    } else if (in_stretch) {
      parts.back() += text[pos];
    } else {
      parts.emplace_back(1, text[pos]);
    }
    in_stretch = token == nullptr;
    pos += token ? token->content.size() : 1;
  }
  return fmt::format("{}", fmt::join(parts, "|"));
}

TEST(AddedTokens, TheLongestIsFoundAmongManyThatBeginAlike) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<AddedToken> tokens;
    for (int32_t id = 0; id < 12; ++id) {
      tokens.push_back(Token(id, RandomLetters(random, 5)));
      tokens.back().special = tokens.back().content.size() % 2 == 1;
    }
    const std::string text = RandomLetters(random, 12);
    for (const auto specials : {SpecialTokens::kAsTokens, SpecialTokens::kAsText}) {
      EXPECT_EQ(Parts(tokens, text, specials), SlowParts(tokens, text, specials)) << text;
    }
  }
}

TEST(AddedTokens, SpecialOnesAreTextWhereTheyShallNotBeParsed) {
  std::vector<AddedToken> tokens = {Token(0, "<a>"), Token(1, "<a><b>"), Token(2, "<b>")};
  tokens[1].special = true;
  EXPECT_EQ(Parts(tokens, "<a><b>"), "<a><b>=1");
  EXPECT_EQ(Parts(tokens, "<a><b>", SpecialTokens::kAsText), "<a>=0|<b>=2");
}

TEST(AddedTokens, StripTakesTheWhiteSpaceBesideThem) {
  std::vector<AddedToken> tokens = {Token(0, "<T>")};
  EXPECT_EQ(Parts(tokens, "a <T> b"), "a |<T>=0| b");
  tokens[0].lstrip = true;
  EXPECT_EQ(Parts(tokens, "a \n<T> b"), "a| \n<T>=0| b");
  EXPECT_EQ(Parts(tokens, "<T>  <T>"), "<T>=0|  <T>=0");
  EXPECT_EQ(Parts(tokens, "\xC2\xA0\xE3\x80\x80<T>"), "\xC2\xA0\xE3\x80\x80<T>=0");
  EXPECT_EQ(Parts(tokens, "\xA0<T>"), "\xA0|<T>=0");  // no character
  tokens[0].rstrip = true;
  EXPECT_EQ(Parts(tokens, " <T>\t\n b"), " <T>\t\n =0|b");
  tokens[0].lstrip = false;
  EXPECT_EQ(Parts(tokens, " <T> <T> "), " |<T> =0|<T> =0");
}

TEST(AddedTokens, WhiteSpaceThatWasTakenIsStillLookedThrough) {
  std::vector<AddedToken> tokens = {Token(0, "<T>"), Token(1, " ")};
  tokens[0].rstrip = true;
  EXPECT_EQ(Parts(tokens, "<T>  x"), "<T>  =0| =1| =1|x");
}

// A token with nothing left to take does not count.
TEST(AddedTokens, WhiteSpaceIsNotTakenTwice) {
  std::vector<AddedToken> tokens = {Token(0, " ")};
  tokens[0].lstrip = tokens[0].rstrip = true;
  EXPECT_EQ(Parts(tokens, "a   b"), "a|   =0|b");
}

TEST(AddedTokens, StrippingIsNotQuadratic) {
  std::vector<AddedToken> tokens = {Token(0, " ")};
  tokens[0].rstrip = true;
  const std::string text(1 << 20, ' ');
  EXPECT_EQ(AddedTokenFinder::Create(tokens)->Find(text, SpecialTokens::kAsTokens).size(),
            text.size());
  tokens[0].lstrip = true;
  EXPECT_EQ(AddedTokenFinder::Create(tokens)->Find(text, SpecialTokens::kAsTokens).size(), 1u);
}

TEST(AddedTokens, SingleWordsHaveNoWordCharacterBeside) {
  std::vector<AddedToken> tokens = {Token(0, "zqx")};
  tokens[0].single_word = true;
  EXPECT_EQ(Parts(tokens, "zqx azqx zqx_ zqx."), "zqx=0| azqx zqx_ |zqx=0|.");
  EXPECT_EQ(Parts(tokens, "\xC3\xA9zqx"), "\xC3\xA9zqx");
  EXPECT_EQ(Parts(tokens, "zqx\xCC\x81"), "zqx\xCC\x81");             // a mark
  EXPECT_EQ(Parts(tokens, "\xE2\x80\x8Dzqx"), "\xE2\x80\x8Dzqx");     // a joiner
  EXPECT_EQ(Parts(tokens, "\xE2\x96\x81zqx"), "\xE2\x96\x81|zqx=0");  // a space marker
  EXPECT_EQ(Parts(tokens, "\xA9zqx"), "\xA9|zqx=0");                  // no character
  EXPECT_EQ(Parts(tokens, "zqxzqx"), "zqxzqx");
}

TEST(AddedTokens, RefusesVeryLongOnes) {
  EXPECT_EQ(AddedTokenFinder::Create({Token(0, std::string(1025, 'a'))}).error().code,
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace kvick
