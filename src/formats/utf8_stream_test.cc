#include "formats/utf8_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "formats/utf8.h"

namespace kvick {
namespace {

struct Case {
  std::string_view bytes;
  std::string_view replaced;  // invalid parts as U+FFFD, by Table 3-8 of The Unicode Standard
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"", ""},
      {"plain", "plain"},
      {"a\xC3\xA9z", "a\xC3\xA9z"},                // é
      {"\xE2\x82\xAC", "\xE2\x82\xAC"},            // €
      {"\xF0\x9F\x98\x80!", "\xF0\x9F\x98\x80!"},  // an emoji
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},    // U+10FFFF, the last one
      {"\xED\x9F\xBF", "\xED\x9F\xBF"},            // U+D7FF, the last before surrogates
      {"a\x80z", "a\xEF\xBF\xBDz"},                // a continuation alone
      {"\xC3z", "\xEF\xBF\xBDz"},                  // cut by another character
      {"\xE2\x82z", "\xEF\xBF\xBDz"},              // one replacement for both bytes
      {"\xE2\x82", "\xEF\xBF\xBD"},                // cut by the end
      {"\xF0\x9F\x98", "\xEF\xBF\xBD"},            // cut by the end
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},    // overlong
      {"\xE0\x9F\xBF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // a surrogate
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // past the last
      {"\xFF\xFE", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xF0\x9F\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},  // a cut character, then a whole one
  };
  return cases;
}

bool EndsWhole(std::string_view text) {
  while (!text.empty()) {
    const Utf8Unit unit = NextUtf8(text);
    if (unit.kind == Utf8Kind::kTruncated) return false;
    text.remove_prefix(unit.num_bytes);
  }
  return true;
}

// All ways to cut up to 10 bytes: bit i of `cuts` says whether to cut after byte i.
TEST(Utf8Stream, GivesTheSameTextHoweverTheBytesAreCut) {
  for (const Case& c : Cases()) {
    const size_t num_places = c.bytes.empty() ? 0 : c.bytes.size() - 1;
    for (uint32_t cuts = 0; cuts < 1u << num_places; ++cuts) {
      Utf8Stream keeping(InvalidUtf8::kKeep), replacing(InvalidUtf8::kReplace);
      std::string kept, replaced;
      for (size_t begin = 0, end = 1; end <= c.bytes.size(); ++end) {
        if (end < c.bytes.size() && (cuts >> (end - 1) & 1) == 0) continue;
        const std::string_view portion = c.bytes.substr(begin, end - begin);
        kept += keeping.Push(portion);
        const std::string text = replacing.Push(portion);
        EXPECT_TRUE(EndsWhole(text));
        replaced += text;
        begin = end;
      }
      kept += keeping.Finish();
      replaced += replacing.Finish();
      EXPECT_EQ(kept, c.bytes) << "cuts " << cuts;
      EXPECT_EQ(replaced, c.replaced) << "cuts " << cuts;
    }
  }
}

TEST(Utf8Stream, HoldsACharacterBackOnlyUntilItIsWhole) {
  Utf8Stream stream(InvalidUtf8::kReplace);
  EXPECT_EQ(stream.Push("a\xF0"), "a");
  EXPECT_EQ(stream.Push("\x9F\x98"), "");
  EXPECT_EQ(stream.Push("\x80z"), "\xF0\x9F\x98\x80z");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, IsAsNewAfterFinish) {
  Utf8Stream stream(InvalidUtf8::kReplace);
  EXPECT_EQ(stream.Push("\xC3"), "");
  EXPECT_EQ(stream.Finish(), kReplacementCharacter);
  EXPECT_EQ(stream.Push("b"), "b");
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace kvick
