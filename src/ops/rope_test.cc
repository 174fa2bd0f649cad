#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/fixed_math.h"
#include "base/hash_of_bits_testing.h"
#include "ops/ops_ref.h"
#include "ops/ops_test_util.h"

namespace kvick {
namespace {

constexpr RopePairs kBothPairs[] = {RopePairs::kHalves, RopePairs::kInterleaved};

struct Table {
  std::vector<double> angles;
  std::vector<float> cos, sin;
};

Table MakeTable(const std::vector<int64_t>& positions, int64_t head_dim) {
  std::vector<double> inverse_frequencies;
  for (int64_t i = 0; i < head_dim / 2; ++i)
    inverse_frequencies.push_back(
        FixedPow(500000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
  Table table;
  for (int64_t position : positions) {
    for (double frequency : inverse_frequencies)
      table.angles.push_back(static_cast<double>(position) * frequency);
  }
  table.cos.resize(table.angles.size());
  table.sin.resize(table.angles.size());
  ComputeRopeTable({inverse_frequencies, positions, 1.0, table.cos.data(), table.sin.data()});
  return table;
}

TEST(ComputeRopeTable, IsRoundedOnceEvenFarOut) {
  const Table table = MakeTable({0, 1, 8191, 131072, 1000000007}, 128);
  for (size_t i = 0; i < table.angles.size(); ++i) {
    EXPECT_EQ(table.cos[i], static_cast<float>(std::cos(table.angles[i])));
    EXPECT_EQ(table.sin[i], static_cast<float>(std::sin(table.angles[i])));
  }
}

// Another hash means other numbers: a new version of the numerics.
TEST(ComputeRopeTable, HasTheRecordedBits) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < 300; ++i) positions.push_back(i * i * i);
  const Table table = MakeTable(positions, 128);
  EXPECT_EQ(testing::HashOfBits(table.cos), 8870828053414864177u);
  EXPECT_EQ(testing::HashOfBits(table.sin), 3570875521821384672u);
}

TEST(ApplyRope, IsNearTheReference) {
  for (Isa isa : AvailableIsas()) {
    for (RopePairs pairs : kBothPairs) {
      for (int64_t head_dim : {2, 4, 6, 8, 16, 48, 64, 80, 128, 256}) {
        const Table table = MakeTable({0, 5, 7000}, head_dim);
        std::vector<float> x = RandomFloats(3 * 3 * head_dim, 1);
        const std::vector<float> before = x;
        const RopeArgs args{x.data(), table.cos.data(), table.sin.data(), 3,
                            3,        head_dim,         head_dim,         pairs};
        std::vector<double> expected(x.size());
        RopeRef(args, table.angles, expected.data());
        ApplyRope({isa, 2}, args);
        for (size_t i = 0; i < x.size(); ++i) {
          // Table, product and sum round once each; |a| + |b| of the pair is below 2 * the largest.
          const double largest = 6;
          ASSERT_NEAR(x[i], expected[i], 3.01 * kF32HalfUlp * 2 * largest)
              << IsaName(isa) << ", head_dim " << head_dim << ", element " << i;
        }
      }
    }
  }
}

TEST(ApplyRope, PositionZeroChangesNothing) {
  const Table table = MakeTable({0}, 64);
  for (RopePairs pairs : kBothPairs) {
    for (Isa isa : AvailableIsas()) {
      std::vector<float> x = RandomFloats(64, 1);
      const std::vector<float> before = x;
      ApplyRope({isa, 1}, {x.data(), table.cos.data(), table.sin.data(), 1, 1, 64, 64, pairs});
      EXPECT_EQ(x, before);
    }
  }
}

TEST(ComputeRopeTable, MultipliesByTheMagnitudeBeforeItRounds) {
  const std::vector<double> frequencies = {1.0, 0.1};
  const std::vector<int64_t> positions = {0, 3};
  std::vector<float> cos(4), sin(4);
  ComputeRopeTable({frequencies, positions, 1.25, cos.data(), sin.data()});
  EXPECT_EQ(cos[0], 1.25f);
  EXPECT_EQ(cos[3], static_cast<float>(1.25 * FixedSinCos(3 * 0.1).cos));
  EXPECT_EQ(sin[2], static_cast<float>(1.25 * FixedSinCos(3.0).sin));
}

TEST(ApplyRope, RotatesTheFirstElementsOfAHeadAsAHeadOfThatSize) {
  constexpr int64_t kHeadDim = 96, kNumRotated = 72, kNumHeads = 3;
  const Table table = MakeTable({7, 4000}, kNumRotated);
  for (Isa isa : AvailableIsas()) {
    for (RopePairs pairs : kBothPairs) {
      const std::vector<float> before = RandomFloats(2 * kNumHeads * kHeadDim, 1);
      std::vector<float> x = before;
      ApplyRope({isa, 1}, {x.data(), table.cos.data(), table.sin.data(), 2, kNumHeads, kHeadDim,
                           kNumRotated, pairs});
      for (int64_t head = 0; head < 2 * kNumHeads; ++head) {
        const int64_t entry = head / kNumHeads * kNumRotated / 2;
        std::vector<float> alone(before.begin() + head * kHeadDim,
                                 before.begin() + head * kHeadDim + kNumRotated);
        ApplyRope({isa, 1}, {alone.data(), table.cos.data() + entry, table.sin.data() + entry, 1, 1,
                             kNumRotated, kNumRotated, pairs});
        EXPECT_TRUE(SameBits(&x[head * kHeadDim], alone.data(), kNumRotated)) << IsaName(isa);
        EXPECT_TRUE(SameBits(&x[head * kHeadDim + kNumRotated],
                             &before[head * kHeadDim + kNumRotated], kHeadDim - kNumRotated));
      }
    }
  }
}

TEST(ApplyRope, BitsDependOnTheTokenAlone) {
  const int64_t num_tokens = 100, num_heads = 9, head_dim = 64,
                token_elements = num_heads * head_dim;
  std::vector<int64_t> positions;
  for (int64_t t = 0; t < num_tokens; ++t) positions.push_back(3 * t);
  const Table table = MakeTable(positions, head_dim);
  const std::vector<float> x = RandomFloats(num_tokens * token_elements, 1);
  for (Isa isa : AvailableIsas()) {
    for (RopePairs pairs : kBothPairs) {
      std::vector<float> alone = x;
      for (int64_t t = 0; t < num_tokens; ++t) {
        const int64_t entry = t * head_dim / 2;
        ApplyRope({isa, 1}, {alone.data() + t * token_elements, table.cos.data() + entry,
                             table.sin.data() + entry, 1, num_heads, head_dim, head_dim, pairs});
      }
      for (int num_threads : {1, 2, 3}) {
        std::vector<float> together = x;
        ApplyRope({isa, num_threads}, {together.data(), table.cos.data(), table.sin.data(),
                                       num_tokens, num_heads, head_dim, head_dim, pairs});
        EXPECT_TRUE(SameBits(together.data(), alone.data(), num_tokens * token_elements));
      }
    }
  }
}

}  // namespace
}  // namespace kvick
