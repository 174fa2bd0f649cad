#include "formats/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/piece_spelling.h"

namespace kvick {
namespace {

using Words = std::vector<std::string>;
using enum SplitBehavior;

Words Split(std::vector<PreTokenizerStep> steps, std::string_view text) {
  PreTokenizer::Pieces pieces{std::string(text), {}, true};
  if (!text.empty()) pieces.spans.push_back({0, text.size()});
  RegexWork work(text.size());
  const Status status = PreTokenizer(std::move(steps)).Split(pieces, work);
  if (!status) return {status.error().message};
  Words words;
  for (const TextSpan& span : pieces.spans) {
    words.push_back(pieces.text.substr(span.begin, span.end - span.begin));
  }
  return words;
}

SplitStep AtRegex(std::string_view regex, SplitBehavior behavior = kIsolated, bool invert = false) {
  return {*TextPattern::FromRegex(regex), behavior, invert};
}

TEST(PreTokenizer, WithoutStepsATextIsOneWord) {
  EXPECT_EQ(Split({}, "to be"), Words{"to be"});
  EXPECT_EQ(Split({}, ""), Words{});
}

TEST(PreTokenizer, EachStepCutsWhatTheOneBeforeLeft) {
  EXPECT_EQ(Split({AtRegex("[0-9]+"), AtRegex("[0-9]{2}")}, "a12345"),
            (Words{"a", "12", "34", "5"}));
}

TEST(PreTokenizer, BehaviorsOfASplit) {
  const std::string_view text = "-a--b-";
  EXPECT_EQ(Split({AtRegex("-", kIsolated)}, text), (Words{"-", "a", "-", "-", "b", "-"}));
  EXPECT_EQ(Split({AtRegex("-", kRemoved)}, text), (Words{"a", "b"}));
  EXPECT_EQ(Split({AtRegex("-", kMergedWithPrevious)}, text), (Words{"-", "a-", "-", "b-"}));
  EXPECT_EQ(Split({AtRegex("-", kMergedWithNext)}, text), (Words{"-a", "-", "-b", "-"}));
  EXPECT_EQ(Split({AtRegex("-", kContiguous)}, text), (Words{"-", "a", "--", "b", "-"}));
}

TEST(PreTokenizer, BehaviorsOfAnInvertedSplit) {
  const std::string_view text = "-ab--";
  EXPECT_EQ(Split({AtRegex("[a-z]", kRemoved, true)}, text), (Words{"a", "b"}));
  EXPECT_EQ(Split({AtRegex("[a-z]", kIsolated, true)}, text), (Words{"-", "a", "b", "--"}));
  EXPECT_EQ(Split({AtRegex("[a-z]", kMergedWithNext, true)}, text), (Words{"-a", "b", "--"}));
  EXPECT_EQ(Split({AtRegex("[a-z]", kContiguous, true)}, text), (Words{"-", "ab", "--"}));
}

TEST(PreTokenizer, EmptyMatchesCutWithoutAWord) {
  EXPECT_EQ(Split({AtRegex("(?=b)")}, "abab"), (Words{"a", "ba", "b"}));
  EXPECT_EQ(Split({AtRegex("x*")}, "axxa"), (Words{"a", "xx", "a"}));
}

TEST(PreTokenizer, CharacterClasses) {
  const auto at = [](CharacterClass c, SplitBehavior b) { return SplitStep{c, b}; };
  EXPECT_EQ(Split({at(CharacterClass::kNumeric, kIsolated)}, "a12\xC2\xB2"),
            (Words{"a", "1", "2", "\xC2\xB2"}));
  EXPECT_EQ(Split({at(CharacterClass::kNumeric, kContiguous)}, "a12\xC2\xB2"),
            (Words{"a", "12\xC2\xB2"}));
  EXPECT_EQ(Split({at(CharacterClass::kPunctuation, kContiguous)}, "a+$b"),
            (Words{"a", "+$", "b"}));
  EXPECT_EQ(Split({at(CharacterClass::kWhiteSpace, kRemoved)}, " a\xE3\x80\x80\nb"),
            (Words{"a", "b"}));
}

TEST(PreTokenizer, WhitespaceKeepsRunsOfWordsAndOfSymbols) {
  EXPECT_EQ(Split({WhitespaceStep{}}, "Hey, you_2 (\xC3\xA9)!"),
            (Words{"Hey", ",", "you_2", "(", "\xC3\xA9", ")!"}));
}

TEST(PreTokenizer, ByteLevelSpellsBytes) {
  ByteLevelStep step{false, *Regex::Compile(kGpt2Pattern)};
  EXPECT_EQ(Split({step}, "I've  3\n"), (Words{"I", "'ve", "\xC4\xA0",
                                               "\xC4\xA0"
                                               "3",
                                               "\xC4\x8A"}));
  step.add_prefix_space = true;
  EXPECT_EQ(Split({step}, "a"), Words{"\xC4\xA0"
                                      "a"});
  EXPECT_EQ(Split({step}, " a"), Words{"\xC4\xA0"
                                       "a"});
}

// The superscripts that spell some bytes are numbers.
TEST(PreTokenizer, StepsBehindByteLevelSeeTheSpelling) {
  const SplitStep digits{CharacterClass::kNumeric, kIsolated};
  EXPECT_EQ(Split({ByteLevelStep{}, digits}, "a\xC2\xB2"), (Words{"a\xC3\x82", "\xC2\xB2"}));
}

TEST(PreTokenizer, MetaspaceTurnsSpacesIntoMarkers) {
  const auto metaspace = [](PrependScheme scheme, bool split) {
    return MetaspaceStep{"_", scheme, split};
  };
  EXPECT_EQ(Split({metaspace(PrependScheme::kAlways, true)}, "a  b"), (Words{"_a", "_", "_b"}));
  EXPECT_EQ(Split({metaspace(PrependScheme::kNever, true)}, "a b"), (Words{"a", "_b"}));
  EXPECT_EQ(Split({metaspace(PrependScheme::kAlways, false)}, " a b"), Words{"_a_b"});
  const SplitStep digits{CharacterClass::kNumeric, kIsolated};
  EXPECT_EQ(Split({digits, metaspace(PrependScheme::kAlways, false)}, "a1 b"),
            (Words{"_a", "_1", "_b"}));
  EXPECT_EQ(Split({digits, metaspace(PrependScheme::kFirst, false)}, "a1 b"),
            (Words{"_a", "1", "_b"}));
}

TEST(PreTokenizer, BytesThatAreNoUtf8AreWordsOfTheirOwn) {
  EXPECT_EQ(Split({AtRegex("[a-z]+", kRemoved)}, "ab\xFF\xE2\x82z"),
            (Words{"\xFF", "\xE2", "\x82"}));
}

TEST(PreTokenizer, AnExpressionThatBacktracksForEverIsAnError) {
  EXPECT_EQ(Split({AtRegex("b|(a+a+)+c")}, "b" + std::string(2000, 'a')),
            Words{"the tokenizer's regular expression needs too much work for this text"});
}

TEST(PreTokenizer, SplitsLongTextsInLinearTime) {
  std::string words;
  for (int i = 0; i < 1 << 18; ++i) words += " ab!";
  EXPECT_EQ(Split({AtRegex(kGpt2Pattern)}, words).size(), size_t{1} << 19);
  EXPECT_EQ(Split({ByteLevelStep{false, *Regex::Compile(kGpt2Pattern)}}, words).size(),
            size_t{1} << 19);
}

TEST(PreTokenizer, ATextCannotGrowWithoutLimit) {
  EXPECT_EQ(Split(std::vector<PreTokenizerStep>(60, ByteLevelStep{}), "\xC3\xA9"),
            Words{"the tokenizer's pre-tokenizer makes the text too large"});
}

}  // namespace
}  // namespace kvick
