#include "formats/regex.h"

#include <gtest/gtest.h>
#include <regex.h>

#include <string>
#include <string_view>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/pretokenizer.h"

namespace kvick {
namespace {

using Matches = std::vector<std::string>;

Result<Matches> TryFindAll(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::Compile(pattern);
  if (!regex) return tl::unexpected(regex.error());
  RegexWork work(text.size());
  std::vector<TextSpan> spans;
  const Status status = regex->FindAll(text, work, spans);
  if (!status) return tl::unexpected(status.error());
  Matches matches;
  for (const TextSpan& span : spans) {
    matches.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return matches;
}

Matches FindAll(std::string_view pattern, std::string_view text) {
  const auto matches = TryFindAll(pattern, text);
  EXPECT_TRUE(matches.has_value()) << matches.error().message;
  return matches.value_or(Matches{});
}

TEST(Regex, HasTheSyntaxOfOniguruma) {
  EXPECT_EQ(FindAll(R"(\d{1,3}+)", "12345"), Matches{"12345"});  // the counted group repeats
  EXPECT_EQ(FindAll("[a-z&&[^aeiou]]+", "hello"), (Matches{"h", "ll"}));
  EXPECT_EQ(FindAll("[a[0-9]]+", "a1-b"), Matches{"a1"});
  EXPECT_EQ(FindAll(R"(\h+)", "xBEEFy"), Matches{"BEEF"});
  EXPECT_EQ(FindAll(R"(\v)", "\n\v"), Matches{"\v"});
  EXPECT_EQ(FindAll(R"(\u4e00)", "\xE4\xB8\x80x"), Matches{"\xE4\xB8\x80"});
  EXPECT_EQ(FindAll(R"(\p{Letter}+)", "ab1"), Matches{"ab"});
  EXPECT_EQ(FindAll("^.", "a\nb"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll(".$", "a\nb"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll("(?m:a.b)", "a\nb"), Matches{"a\nb"});
  EXPECT_EQ(FindAll("(?i:re)", "RE"), Matches{"RE"});
}

TEST(Regex, PunctuationHasSymbols) {
  EXPECT_EQ(FindAll("[[:punct:]]+", "a.$+<>b"), Matches{".$+<>"});
  EXPECT_EQ(FindAll("[^[:punct:]]+", "a.$+<>b"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll("[[:^punct:]]+", "a.$+<>b"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll("[a[:punct:]]+", "xa$.y"), Matches{"a$."});
  EXPECT_EQ(FindAll(R"(\[[[:punct:]]+)", "[$"), Matches{"[$"});
  EXPECT_EQ(FindAll("[:punct:]+", "put$"), Matches{"put"});  // letters and a colon
}

TEST(Regex, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(FindAll(R"(\s)", "a\xE1\xA0\x8E"), Matches{});  // U+180E, a joiner
  EXPECT_EQ(FindAll(R"(\s)", "a\xC2\x85"), Matches{"\xC2\x85"});
}

TEST(Regex, EmptyMatchesCountExceptBehindAMatch) {
  EXPECT_EQ(FindAll("x*", "axxa"), (Matches{"", "xx", ""}));
  EXPECT_EQ(FindAll("", "ab"), (Matches{"", "", ""}));
  EXPECT_EQ(FindAll("x*", ""), Matches{});
}

TEST(Regex, OneWordOfAMillionLettersIsNoTrouble) {
  const std::string text = std::string(1'000'000, 'a') + "1234567";
  const Matches matches = FindAll(R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})", text);
  EXPECT_EQ(matches.size(), 4u);
  EXPECT_EQ(matches.back(), "7");
  EXPECT_EQ(FindAll(kGpt2Pattern, std::string(1 << 20, ' ')).size(), 1u);
  EXPECT_EQ(FindAll(kGpt2Pattern, std::string(1 << 20, ' ') + "a").size(), 2u);
}

TEST(Regex, EndlessBacktrackingIsAnError) {
  const std::string text(2000, 'a');
  for (const char* pattern : {"z|(a+a+)+b", "z|(a|a)+b", "z|(a|aa)+b"}) {
    const auto matches = TryFindAll(pattern, text);
    ASSERT_FALSE(matches.has_value()) << pattern;
    EXPECT_EQ(matches.error().code, ErrorCode::kExhausted) << matches.error().message;
  }
}

// Each start in the second half scans to the end of the text. None of that is backtracking, and one
// search does it all.
TEST(Regex, EndlessScanningIsAnError) {
  const std::string text = std::string(100'000, 'c') + std::string(200'000, 'a');
  const auto matches = TryFindAll("cx|a[^b]*b", text);
  ASSERT_FALSE(matches.has_value());
  EXPECT_EQ(matches.error().code, ErrorCode::kExhausted) << matches.error().message;
}

// An expression is compiled with a prefix, which must not become a part of it.
TEST(Regex, TheFirstCharacterHasNothingBeforeIt) {
  EXPECT_EQ(testing::ErrorOf(Regex::Compile("*a")).code, ErrorCode::kCorrupt);
  EXPECT_EQ(testing::ErrorOf(Regex::Compile("{2}")).code, ErrorCode::kCorrupt);
  EXPECT_EQ(FindAll("a|B|^c", "cab"), (Matches{"c", "a"}));
  EXPECT_EQ(FindAll("(?i)a|B", "cab"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll("(?x)a | b # both", "ab"), (Matches{"a", "b"}));
  EXPECT_EQ(FindAll(R"((a)\1|\Gb)", "baab"), (Matches{"b", "aa", "b"}));
}

// No single search is expensive; all of them together are.
TEST(Regex, WorkIsLimitedForTheWholeText) {
  const auto matches = TryFindAll("(?:a*b)|a", std::string(100'000, 'a'));
  ASSERT_FALSE(matches.has_value());
  EXPECT_EQ(matches.error().code, ErrorCode::kExhausted);
}

TEST(Regex, RefusesWhatIsNoRegularExpression) {
  EXPECT_EQ(testing::ErrorOf(Regex::Compile("(b")).code, ErrorCode::kCorrupt);
  EXPECT_EQ(testing::ErrorOf(Regex::Compile("(b")).message,
            "cannot compile the regular expression: end pattern with unmatched parenthesis");
  EXPECT_EQ(testing::ErrorOf(Regex::Compile(std::string(100'000, 'a'))).code,
            ErrorCode::kUnsupported);
  EXPECT_EQ(testing::ErrorOf(Regex::Compile(std::string(1000, '('))).code, ErrorCode::kUnsupported);
}

// Oniguruma exports functions of these names that mean something else by their flags.
TEST(Regex, AProgramThatCallsRegcompGetsThatOfTheCLibrary) {
  regex_t regex;
  ASSERT_EQ(regcomp(&regex, "^(a|b)*$", REG_EXTENDED), 0);
  EXPECT_EQ(regexec(&regex, "", 0, nullptr, 0), 0);
  EXPECT_EQ(regexec(&regex, "abba", 0, nullptr, 0), 0);
  EXPECT_EQ(regexec(&regex, "ABBA", 0, nullptr, 0), REG_NOMATCH);
  regfree(&regex);
}

}  // namespace
}  // namespace kvick
