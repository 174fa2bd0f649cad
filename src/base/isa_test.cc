#include "base/isa.h"

#include <gtest/gtest.h>

namespace kvick {
namespace {

TEST(Isa, NamesParseBack) {
  for (Isa isa : AllIsas()) {
    const auto parsed = ParseIsa(IsaName(isa));
    if (IsaAvailable(isa)) {
      EXPECT_EQ(parsed.value(), isa);
    } else {
      EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported);
    }
  }
  EXPECT_EQ(ParseIsa("auto").value(), BestIsa());
  EXPECT_EQ(ParseIsa("mmx").error().code, ErrorCode::kInvalidArgument);
}

TEST(Isa, TheBestIsRealAndScalarAlwaysThere) {
  EXPECT_NE(BestIsa(), Isa::kAmxEmulated);
  EXPECT_TRUE(IsaAvailable(Isa::kScalar));
}

}  // namespace
}  // namespace kvick
