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

TEST(Isa, AnOrderChoosesAmongItsOwn) {
  EXPECT_EQ(OrderOf(ParseIsa("auto", "canonical").value()), NumericOrder::kCanonical);
  EXPECT_EQ(ParseIsa("scalar", "canonical").value(), Isa::kScalar);
  EXPECT_EQ(ParseIsa("scalar", "tiles").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ParseIsa("auto", "exact").error().code, ErrorCode::kInvalidArgument);
  const auto tiles = ParseIsa("auto", "tiles");
  if (!IsaAvailable(Isa::kAmxEmulated)) {
    EXPECT_EQ(tiles.error().code, ErrorCode::kUnsupported);
  } else {
    EXPECT_EQ(tiles.value(), IsaAvailable(Isa::kAmx) ? Isa::kAmx : Isa::kAmxEmulated);
  }
}

TEST(Isa, TheBestIsRealAndScalarAlwaysThere) {
  EXPECT_NE(BestIsa(), Isa::kAmxEmulated);
  EXPECT_TRUE(IsaAvailable(Isa::kScalar));
}

}  // namespace
}  // namespace kvick
