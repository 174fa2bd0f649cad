#include "formats/normalizer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/piece_spelling.h"

namespace kvick {
namespace {

std::string Normalized(std::vector<NormalizerStep> steps, std::string_view text) {
  RegexWork work(text.size());
  const auto result = Normalizer(std::move(steps)).Normalize(text, work);
  return result ? result->text : result.error().message;
}

TEST(Normalizer, NormalForms) {
  const std::string composed = "\xC3\xA9", decomposed = "e\xCC\x81";
  EXPECT_EQ(Normalized({UnicodeForm::kNfc}, decomposed), composed);
  EXPECT_EQ(Normalized({UnicodeForm::kNfd}, composed), decomposed);
  EXPECT_EQ(Normalized({UnicodeForm::kNfkc}, "\xEF\xAC\x81" + decomposed), "fi" + composed);
  EXPECT_EQ(Normalized({UnicodeForm::kNfkd}, "\xEF\xAC\x81" + composed), "fi" + decomposed);
  EXPECT_EQ(Normalized({UnicodeForm::kNfc}, "\xEF\xAC\x81"), "\xEF\xAC\x81");
  // Hangul, and marks in the wrong order.
  EXPECT_EQ(Normalized({UnicodeForm::kNfd}, "\xEA\xB0\x81"),
            "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");
  EXPECT_EQ(Normalized({UnicodeForm::kNfc}, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"),
            "\xEA\xB0\x81");
  EXPECT_EQ(Normalized({UnicodeForm::kNfd}, "a\xCC\x81\xCC\xA3"), "a\xCC\xA3\xCC\x81");
}

TEST(Normalizer, BytesThatAreNoUtf8StayAsTheyAre) {
  EXPECT_EQ(Normalized({UnicodeForm::kNfc},
                       "\xFF"
                       "e\xCC\x81\xE2\x82"),
            "\xFF\xC3\xA9\xE2\x82");
  EXPECT_EQ(Normalized({LowercaseStep{}}, "\xFF\xC3\x89\xC3"), "\xFF\xC3\xA9\xC3");
  EXPECT_EQ(Normalized({StripStep{true, true}}, " \xFF "), "\xFF");
  EXPECT_EQ(Normalized({StripAccentsStep{}},
                       "\xFF"
                       "e\xCC\x81\xC3"),
            "\xFF"
            "e\xC3");
  EXPECT_EQ(Normalized({ReplaceStep{*TextPattern::FromRegex("[a-z]"), "x"}},
                       "a\xFF"
                       "b\xC3"),
            "x\xFFx\xC3");
}

TEST(Normalizer, MarksInAlternatingOrderAreNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += i % 2 ? "\xCC\xA3" : "\xCC\x81";
  EXPECT_EQ(Normalized({UnicodeForm::kNfd}, text).size(), text.size());
}

TEST(Normalizer, LowercaseIsThatOfEachCharacter) {
  EXPECT_EQ(Normalized({LowercaseStep{}}, "AbC\xC3\x89"), "abc\xC3\xA9");
  EXPECT_EQ(Normalized({LowercaseStep{}}, "\xC4\xB0"), "i\xCC\x87");  // I with a dot
  EXPECT_EQ(Normalized({LowercaseStep{}}, "\xCE\xA3"), "\xCF\x83");   // a final sigma, too
  EXPECT_EQ(Normalized({LowercaseStep{}}, "\xC3\x9F"), "\xC3\x9F");
}

TEST(Normalizer, StripsWhiteSpaceAndAccents) {
  const std::string text =
      " \t\xC2\xA0"
      "a b\n ";
  EXPECT_EQ(Normalized({StripStep{true, true}}, text), "a b");
  EXPECT_EQ(Normalized({StripStep{true, false}}, text), "a b\n ");
  EXPECT_EQ(Normalized({StripStep{false, true}}, text),
            " \t\xC2\xA0"
            "a b");
  EXPECT_EQ(Normalized({StripStep{true, true}}, " \n "), "");
  EXPECT_EQ(Normalized({UnicodeForm::kNfd, StripAccentsStep{}}, "\xC3\xA9\xC3\xA0"), "ea");
}

TEST(Normalizer, PrependsToWhatIsNotEmpty) {
  EXPECT_EQ(Normalized({PrependStep{"> "}}, "a"), "> a");
  EXPECT_EQ(Normalized({PrependStep{"> "}}, ""), "");
}

TEST(Normalizer, Replaces) {
  EXPECT_EQ(Normalized({ReplaceStep{*TextPattern::FromString("aa"), "b"}}, "aaaaa"), "bba");
  EXPECT_EQ(Normalized({ReplaceStep{*TextPattern::FromString("a."), ""}}, "a.ab"), "ab");
  EXPECT_EQ(Normalized({ReplaceStep{*TextPattern::FromRegex(" {2,}"), "_"}}, "a   b c"), "a_b c");
  EXPECT_EQ(Normalized({ReplaceStep{*TextPattern::FromString(""), "-"}}, "ab"), "-a-b-");
}

TEST(Normalizer, StepsWorkOnTheResultOfTheStepBefore) {
  const ReplaceStep spaces{*TextPattern::FromString(" "), "_"};
  EXPECT_EQ(Normalized({PrependStep{" "}, spaces}, "a b"), "_a_b");
  EXPECT_EQ(Normalized({spaces, PrependStep{" "}}, "a b"), " a_b");
}

TEST(Normalizer, ATextCannotGrowWithoutLimit) {
  const ReplaceStep doubling{*TextPattern::FromString("a"), "aa"};
  EXPECT_EQ(Normalized(std::vector<NormalizerStep>(60, doubling), "a"),
            "the tokenizer's normalizer makes the text too large");
}

}  // namespace
}  // namespace kvick
