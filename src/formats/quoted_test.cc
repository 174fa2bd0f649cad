#include "formats/quoted.h"

#include <gtest/gtest.h>

#include <string>

namespace kvick {
namespace {

TEST(Quoted, ShowsTextAsText) {
  EXPECT_EQ(Quoted("blk.0"), "\"blk.0\"");
  EXPECT_EQ(Quoted("Gr\u00fc\u00dfe \u4f60\u597d \U0001f600"),
            "\"Gr\u00fc\u00dfe \u4f60\u597d \U0001f600\"");
  EXPECT_EQ(Quoted("say \"a\\b\""), R"("say \"a\\b\"")");
}

TEST(Quoted, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Quoted("a\n\x1b[2J\x7f"), R"("a\x0a\x1b[2J\x7f")");
  EXPECT_EQ(Quoted("\u0085 \u202e \u2066 \u2028"),
            R"("\xc2\x85 \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8")");
  EXPECT_EQ(Quoted("\xff\xc3"), R"("\xff\xc3")");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // a surrogate
}

TEST(Quoted, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(Quoted(std::string(60, 'n')), "\"" + std::string(60, 'n') + "\"");
  EXPECT_EQ(Quoted(std::string(61, 'n')), "\"" + std::string(60, 'n') + "...\"");
  EXPECT_EQ(Quoted("\u4f60\u597d", 5), "\"\u4f60...\"");
}

TEST(IsPrintable, IsWhatNeedsNoEscapes) {
  EXPECT_TRUE(IsPrintable("models/Gr\u00f6\u00dfe \"x\".gguf"));
  EXPECT_TRUE(IsPrintable(""));
  for (const char* text : {"a\tb", "\xff", "\u202e", "\x1b"}) EXPECT_FALSE(IsPrintable(text));
}

}  // namespace
}  // namespace kvick
