#include "ops/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/ops_ref.h"
#include "ops/ops_test_util.h"

namespace kvick {
namespace {

constexpr int64_t kNumCols[] = {1, 7, 8, 16, 31, 64, 172, 4096};

void ExpectNearReference(Isa isa, const RmsNormArgs& args) {
  const int64_t n = args.num_tokens * args.num_cols;
  std::vector<double> expected(static_cast<size_t>(n));
  RmsNormRef(args, expected.data());
  RmsNorm({isa, 2}, args);
  for (int64_t i = 0; i < n; ++i) {
    // The scale is rounded to f32, then two products. Sums in f64 add nothing to speak of.
    ASSERT_NEAR(args.out[i], expected[i], 3.01 * kF32HalfUlp * std::fabs(expected[i]) + 0x1p-149)
        << IsaName(isa) << ", " << args.num_cols << " columns, element " << i;
  }
}

TEST(RmsNorm, IsNearTheReference) {
  for (Isa isa : AvailableIsas()) {
    for (int64_t num_cols : kNumCols) {
      const std::vector<float> x = RandomFloats(5 * num_cols, 1),
                               weight = RandomFloats(num_cols, 2);
      std::vector<float> out(x.size());
      ExpectNearReference(isa, {x.data(), weight.data(), 1e-5f, 5, num_cols, out.data()});
    }
  }
}

TEST(RmsNorm, LargeAndSmallRowsDoNotOverflowOrVanish) {
  const std::vector<float> weight(20, 1.0f);
  for (Isa isa : AvailableIsas()) {
    for (float value : {1e30f, 1e-30f}) {
      const std::vector<float> x(20, value);
      std::vector<float> out(20);
      ExpectNearReference(isa, {x.data(), weight.data(), 0, 1, 20, out.data()});
    }
  }
}

TEST(RmsNorm, BitsDependOnTheRowAlone) {
  const int64_t num_tokens = 100, num_cols = 1000;
  const std::vector<float> x = RandomFloats(num_tokens * num_cols, 1);
  const std::vector<float> weight = RandomFloats(num_cols, 2);
  for (Isa isa : AvailableIsas()) {
    std::vector<float> rows(x.size());
    for (int64_t t = 0; t < num_tokens; ++t) {
      const int64_t first = t * num_cols;
      RmsNorm({isa, 1}, {x.data() + first, weight.data(), 1e-5f, 1, num_cols, rows.data() + first});
    }
    for (int num_threads : {1, 2, 3}) {
      std::vector<float> in_place = x;
      RmsNorm({isa, num_threads},
              {in_place.data(), weight.data(), 1e-5f, num_tokens, num_cols, in_place.data()});
      EXPECT_TRUE(SameBits(in_place.data(), rows.data(), num_tokens * num_cols)) << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace kvick
