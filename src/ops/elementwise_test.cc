#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/add.h"
#include "ops/ops_ref.h"
#include "ops/ops_test_util.h"
#include "ops/swiglu.h"

namespace kvick {
namespace {

constexpr int64_t kSizes[] = {1, 7, 15, 16, 17, 172, 100000};

TEST(SwiGlu, IsNearTheReference) {
  for (Isa isa : AvailableIsas()) {
    for (int64_t n : kSizes) {
      std::vector<float> gate = RandomFloats(n, 1);
      const std::vector<float> up = RandomFloats(n, 2);
      for (float& value : gate) value *= 20;  // to where exp is tiny, and huge
      const std::vector<float> before = gate;
      SwiGlu({isa, 2}, gate, up);
      for (int64_t i = 0; i < n; ++i) {
        const double expected = SiluRef(before[i]) * up[i];
        // exp errs by one unit in the last place, 2 roundings; then a sum, a quotient, two
        // products.
        ASSERT_NEAR(gate[i], expected, 6 * kF32HalfUlp * std::fabs(expected) + 0x1p-140)
            << IsaName(isa) << ", silu(" << before[i] << ") * " << up[i];
      }
    }
  }
}

TEST(SwiGlu, IsRightAtTheEnds) {
  const std::vector<float> x = {-std::numeric_limits<float>::max(), -200, -104, 0, 104, 200,
                                std::numeric_limits<float>::max()};
  for (Isa isa : AvailableIsas()) {
    std::vector<float> gate = x;
    SwiGlu({isa, 1}, gate, std::vector<float>(x.size(), 1.0f));
    EXPECT_EQ(gate[0], 0);
    EXPECT_EQ(gate[1], 0);
    EXPECT_NEAR(gate[2], 0, 1e-42);
    EXPECT_EQ(gate[3], 0);
    for (size_t i = 4; i < x.size(); ++i) EXPECT_EQ(gate[i], x[i]) << IsaName(isa);
  }
}

TEST(SwiGlu, BitsDoNotDependOnThePlaceOrTheThreads) {
  const std::vector<float> up = RandomFloats(100003, 2), gate = RandomFloats(100003, 1);
  for (Isa isa : AvailableIsas()) {
    std::vector<float> all = gate;
    SwiGlu({isa, 1}, all, up);
    for (int num_threads : {2, 3}) {
      std::vector<float> shared = gate;
      SwiGlu({isa, num_threads}, shared, up);
      EXPECT_TRUE(SameBits(shared.data(), all.data(), 100003)) << IsaName(isa);
    }
    for (size_t i = 0; i < 100003; i += 997) {  // each alone
      float one = gate[i];
      SwiGlu({isa, 1}, {&one, 1}, {&up[i], 1});
      ASSERT_TRUE(SameBits(&one, &all[i], 1)) << IsaName(isa) << ", element " << i;
    }
  }
}

TEST(AddInPlace, AddsOnAnyNumberOfThreads) {
  for (Isa isa : AvailableIsas()) {
    for (int64_t n : kSizes) {
      for (int num_threads : {1, 3}) {
        std::vector<float> x = RandomFloats(n, 1);
        const std::vector<float> before = x, y = RandomFloats(n, 2);
        AddInPlace({isa, num_threads}, x, y);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], before[i] + y[i]);
      }
    }
  }
}

}  // namespace
}  // namespace kvick
