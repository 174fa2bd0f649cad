#include "formats/quoted.h"

#include <gtest/gtest.h>

#include <string>

namespace kvick {
namespace {

TEST(Quoted, EscapesAllButPrintableAsciiAndCutsLongText) {
  EXPECT_EQ(Quoted("blk.0"), "\"blk.0\"");
  EXPECT_EQ(Quoted("a\"\n\xff\\"), "\"a\\x22\\x0a\\xff\\x5c\"");
  EXPECT_EQ(Quoted(std::string(61, 'n')), "\"" + std::string(60, 'n') + "...\"");
}

}  // namespace
}  // namespace kvick
