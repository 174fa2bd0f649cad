#include "formats/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kvick {
namespace {

using Words = std::vector<std::string_view>;

PreTokenizer MustCreate(const std::vector<std::string>& patterns) {
  auto pretokenizer = PreTokenizer::Create(patterns);
  EXPECT_TRUE(pretokenizer.has_value());
  return std::move(pretokenizer).value();
}

TEST(PreTokenizer, WithoutPatternsATextIsOneWord) {
  EXPECT_EQ(MustCreate({}).Split("to be"), Words{"to be"});
  EXPECT_EQ(MustCreate({}).Split(""), Words{});
}

TEST(PreTokenizer, CutsAsGpt2Does) {
  const PreTokenizer gpt2 = MustCreate({std::string(kGpt2Pattern)});
  EXPECT_EQ(gpt2.Split("I've  3 \xC3\xA9l\xC3\xA8ves!\n"),
            (Words{"I", "'ve", " ", " 3", " \xC3\xA9l\xC3\xA8ves", "!", "\n"}));
}

TEST(PreTokenizer, KeepsWhatNoPatternMatches) {
  EXPECT_EQ(MustCreate({"b+"}).Split("abbc"), (Words{"a", "bb", "c"}));
  EXPECT_EQ(MustCreate({"x*"}).Split("axxa"), (Words{"a", "xx", "a"}));  // x* matches nothing, too
}

TEST(PreTokenizer, EachPatternCutsWhatTheOneBeforeLeft) {
  EXPECT_EQ(MustCreate({"[0-9]+", "[0-9]{2}"}).Split("a12345"), (Words{"a", "12", "34", "5"}));
}

TEST(PreTokenizer, BytesThatAreNoUtf8AreWordsOfTheirOwn) {
  EXPECT_EQ(MustCreate({"[a-z]+"}).Split("ab\xFF\xE2\x82z"),
            (Words{"ab", "\xFF", "\xE2", "\x82", "z"}));
}

// PCRE2's \s matches U+180E, the White_Space of tokenizers does not.
TEST(PreTokenizer, TheMongolianVowelSeparatorIsNoSpace) {
  EXPECT_EQ(MustCreate({"\\s+"}).Split("a\xE1\xA0\x8E"), Words{"a\xE1\xA0\x8E"});
  EXPECT_EQ(MustCreate({"[^\\s]+"}).Split("a\xE1\xA0\x8E"), Words{"a\xE1\xA0\x8E"});
  EXPECT_EQ(MustCreate({"\\S+"}).Split("a\xC2\x85"), (Words{"a", "\xC2\x85"}));
  EXPECT_EQ(MustCreate({"\\\\s"}).Split("\\s "), (Words{"\\s", " "}));  // an escaped backslash
}

TEST(PreTokenizer, APatternThatBacktracksForEverStillGivesAllTheText) {
  const std::string text = "b" + std::string(2000, 'a');
  const Words words = MustCreate({"b|(a*)*c"}).Split(text);
  EXPECT_EQ(words, (Words{"b", std::string_view(text).substr(1)}));
}

TEST(PreTokenizer, SplitsLongRunsInLinearTime) {
  const PreTokenizer gpt2 = MustCreate({std::string(kGpt2Pattern)});
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(gpt2.Split(spaces), Words{spaces});
  std::string words;
  for (int i = 0; i < 1 << 18; ++i) words += " ab!";
  EXPECT_EQ(gpt2.Split(words).size(), size_t{1} << 19);
}

TEST(PreTokenizer, RefusesWhatIsNoRegularExpression) {
  const auto error = PreTokenizer::Create({"a", "(b"}).error();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("missing closing parenthesis at byte 2"), std::string::npos)
      << error.message;
  EXPECT_FALSE(PreTokenizer::Create({"\\C"}).has_value());  // would stop inside a character
  EXPECT_FALSE(PreTokenizer::Create({std::string(100'000, 'a')}).has_value());
}

}  // namespace
}  // namespace kvick
