#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kvick {
namespace {

using Tokens = std::vector<int32_t>;
using Blocks = std::vector<BlockId>;

BlockId B(int32_t i) { return BlockId{i}; }

class PrefixIndexTest : public testing::Test {
 protected:
  void TearDown() override {
    const Status verified = index_.Verify();
    EXPECT_TRUE(verified.has_value()) << verified.error().message;
  }

  BlockId Add(std::optional<BlockId> parent, const Tokens& tokens, BlockId block) {
    return index_.Add(scope_, parent, tokens, block).block;
  }
  int64_t Find(const Tokens& tokens, const Blocks& wanted) {
    Blocks blocks;
    const int64_t num_hit = index_.Find(scope_, tokens, blocks);
    EXPECT_EQ(blocks, wanted);
    return num_hit;
  }

  PrefixScope scope_ = PrefixScope().Text("model", "m");
  PrefixIndex index_ =
      PrefixIndex::Create(/*num_blocks=*/16, /*block_tokens=*/4, Backing::kOnDemand).value();
};

TEST(PrefixScope, IsEqualExactlyIfItsFieldsAre) {
  const std::vector<PrefixScope> different = {
      PrefixScope(),
      PrefixScope().Text("", ""),
      PrefixScope().Text("", "").Text("", ""),
      PrefixScope().Text("a", "bc"),
      PrefixScope().Text("ab", "c"),
      PrefixScope().Text("abc", ""),
      PrefixScope().Text("a", "b").Text("c", ""),
      PrefixScope().Text("c", "").Text("a", "b"),
      PrefixScope().Text("a", std::string("b\0c", 3)),
      PrefixScope().Text("a", std::string("b\0", 2)),
      PrefixScope().Text("a", "b"),
      PrefixScope().Integer("a", 1),
      PrefixScope().Integer("a", -1),
      PrefixScope().Integer("a", int64_t{1} << 32),
      PrefixScope().Real("a", 1),
      PrefixScope().Real("a", 0.0),
      PrefixScope().Real("a", -0.0),
      PrefixScope().Text("a", std::string(8, '\0')),
      PrefixScope().Integer("a", 0),
      // A value that looks like the rest of one field and the beginning of another.
      PrefixScope().Text("a", std::string("b") + "t" + std::string("\1\0\0\0\0\0\0\0", 8) + "c" +
                                  std::string(8, '\0')),
  };
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t j = 0; j < different.size(); ++j) {
      EXPECT_EQ(different[i] == different[j], i == j) << i << " and " << j;
    }
  }
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(PrefixScope().Real("a", not_a_number), PrefixScope().Real("a", not_a_number));
}

TEST_F(PrefixIndexTest, FindsDownToSingleTokens) {
  Add({}, {1, 2, 3, 4}, B(7));
  Add(B(7), {5, 6, 7, 8}, B(3));
  Add(B(7), {5, 6, 9}, B(5));
  EXPECT_EQ(Find({}, {}), 0);
  EXPECT_EQ(Find({9, 2, 3, 4}, {}), 0);
  EXPECT_EQ(Find({1}, {B(7)}), 1);
  EXPECT_EQ(Find({1, 2, 3, 4}, {B(7)}), 4);
  EXPECT_EQ(Find({1, 2, 9, 4, 5}, {B(7)}), 2);
  EXPECT_EQ(Find({1, 2, 3, 4, 4}, {B(7)}), 4);
  EXPECT_EQ(Find({1, 2, 3, 4, 5, 6, 7, 0}, {B(7), B(3)}), 7);
  EXPECT_EQ(Find({1, 2, 3, 4, 5, 6, 7, 8, 9}, {B(7), B(3)}), 8);
  EXPECT_EQ(Find({1, 2, 3, 4, 5, 6, 9, 9}, {B(7), B(5)}), 7);
  EXPECT_EQ(index_.stats().tokens_hit, 0 + 0 + 1 + 4 + 2 + 4 + 7 + 8 + 7);
  EXPECT_EQ(index_.stats().tokens_asked, 0 + 4 + 1 + 4 + 5 + 5 + 8 + 9 + 8);
}

TEST_F(PrefixIndexTest, ScopesShareNothingAndAnEmptyOneGoes) {
  const PrefixScope other = PrefixScope().Text("mode", "lm");
  Add({}, {1, 2}, B(0));
  Blocks blocks;
  EXPECT_EQ(index_.Find(other, Tokens{1, 2}, blocks), 0);
  EXPECT_EQ(index_.Add(other, {}, Tokens{1, 2}, B(1)).block, B(1));
  EXPECT_EQ(index_.Find(other, Tokens{1, 2}, blocks), 2);
  EXPECT_EQ(blocks, Blocks{B(1)});
  EXPECT_EQ(index_.FirstConflict(other, Tokens{1, 2}, Blocks{B(0)}), 0u);
  index_.MarkEvictable(B(0));
  EXPECT_EQ(index_.Evict(), B(0));  // Verify finds no root without children
  EXPECT_EQ(Find({1, 2}, {}), 0);
}

TEST_F(PrefixIndexTest, ALongerBlockSupersedesItsBeginning) {
  Add({}, {1}, B(0));
  Add({}, {2}, B(1));
  Add({}, {1, 5}, B(2));  // in order between what is superseded and its sibling
  EXPECT_FALSE(index_.Contains(B(0)));
  const auto added = index_.Add(scope_, {}, Tokens{1, 5, 6, 7}, B(3));
  EXPECT_EQ(added.superseded, B(2));
  EXPECT_EQ(Add({}, {1, 5, 6}, B(4)), B(3));  // a beginning is not added
  EXPECT_EQ(Add({}, {1, 5, 6, 7}, B(4)), B(3));
  EXPECT_FALSE(index_.Contains(B(4)));
  EXPECT_EQ(Add({}, {1, 5, 6, 8}, B(4)), B(4));
  EXPECT_EQ(index_.stats().blocks_superseded, 2);
  EXPECT_EQ(index_.num_nodes(), 3);
}

TEST_F(PrefixIndexTest, ABlockThatIsKnownGetsItsFurtherTokens) {
  Add({}, {1}, B(0));
  Add({}, {2}, B(1));
  EXPECT_EQ(Add({}, {1, 7, 8, 9}, B(0)), B(0));
  EXPECT_EQ(index_.NumTokens(B(0)), 4);
  EXPECT_EQ(Find({1, 7, 8, 9}, {B(0)}), 4);
  EXPECT_EQ(index_.stats().blocks_superseded, 0);
}

TEST_F(PrefixIndexTest, ConflictsAreOtherTokensAndOtherPlaces) {
  Add({}, {1, 2, 3, 4}, B(0));
  Add(B(0), {5, 6, 7, 8}, B(1));
  const auto conflict = [&](const Tokens& tokens, const Blocks& blocks) {
    return index_.FirstConflict(scope_, tokens, blocks);
  };
  EXPECT_EQ(conflict({1, 2, 3, 4, 5, 6, 7, 8, 9}, {B(0), B(1), B(2)}), std::nullopt);
  EXPECT_EQ(conflict({1, 2, 3, 4, 5, 6}, {B(0), B(1)}), std::nullopt);
  EXPECT_EQ(conflict({1, 2, 3, 4, 5, 9}, {B(0), B(1)}), 1u);
  EXPECT_EQ(conflict({1, 2, 3, 0, 5, 6}, {B(0), B(1)}), 0u);
  EXPECT_EQ(conflict({5, 6, 7, 8}, {B(1)}), 0u);
}

TEST_F(PrefixIndexTest, TheLongestIdleGoesFirstAndALeafBeforeItsParent) {
  Add({}, {1, 1, 1, 1}, B(0));
  Add(B(0), {2, 2, 2, 2}, B(1));
  Add(B(0), {3, 3, 3, 3}, B(2));
  Add({}, {4}, B(3));
  index_.MarkEvictable(B(2));
  index_.MarkEvictable(B(3));
  index_.MarkEvictable(B(1));
  index_.MarkEvictable(B(0));
  EXPECT_EQ(index_.num_evictable(), 4);
  index_.Hold(B(0));
  index_.Hold(B(2));  // a sequence with {1, 1, 1, 1, 3}
  EXPECT_EQ(index_.num_evictable(), 2);
  index_.MarkEvictable(B(2));
  index_.MarkEvictable(B(0));
  Add({}, {4}, B(9));  // known: used once more
  for (const BlockId wanted : {B(1), B(2), B(0), B(3)}) EXPECT_EQ(index_.Evict(), wanted);
  EXPECT_EQ(index_.num_nodes(), 0);
  EXPECT_EQ(index_.stats().blocks_evicted, 4);
}

}  // namespace
}  // namespace kvick
