#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/add.h"
#include "ops/glu.h"
#include "ops/ops_ref.h"
#include "ops/ops_test_util.h"
#include "ops/scale.h"

namespace kvick {
namespace {

constexpr int64_t kSizes[] = {1, 7, 15, 16, 17, 172, 100000};

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh};

TEST(Glu, IsNearTheReference) {
  for (Isa isa : AvailableIsas()) {
    for (const Activation activation : kActivations) {
      for (int64_t n : kSizes) {
        std::vector<float> gate = RandomFloats(n, 1);
        const std::vector<float> up = RandomFloats(n, 2);
        // To where exp is tiny, and huge.
        for (float& value : gate) value *= activation == Activation::kSilu ? 20 : 3;
        const std::vector<float> before = gate;
        Glu({isa, 2}, {activation, gate, up});
        for (int64_t i = 0; i < n; ++i) {
          const double expected = ActivationRef(activation, before[i]) * up[i];
          // exp errs by one unit in the last place, 2 roundings; then a sum, a quotient, two
          // products. The exponent of the GELU, below 2u, is rounded 6 times, and its relative
          // error is the absolute one of the exponent. An exp below 2^-126 is 0.
          const double x = before[i];
          const double exponent =
              activation == Activation::kSilu ? 0 : 1.6 * std::fabs(x + 0.044715 * x * x * x);
          ASSERT_NEAR(gate[i], expected,
                      (6 + 6 * exponent) * kF32HalfUlp * std::fabs(expected) + 0x1p-126 +
                          std::fabs(x * up[i]) * 0x1p-126)
              << IsaName(isa) << ", activation(" << before[i] << ") * " << up[i];
        }
      }
    }
  }
}

TEST(Glu, IsRightAtTheEnds) {
  const std::vector<float> x = {-std::numeric_limits<float>::max(), -200, -104, 0, 104, 200,
                                std::numeric_limits<float>::max()};
  const std::vector<float> ones(x.size(), 1.0f);
  for (Isa isa : AvailableIsas()) {
    for (const Activation activation : kActivations) {
      std::vector<float> gate = x;
      Glu({isa, 1}, {activation, gate, ones});
      EXPECT_EQ(gate[0], 0);
      EXPECT_EQ(gate[1], 0);
      EXPECT_NEAR(gate[2], 0, 1e-42);
      EXPECT_EQ(gate[3], 0);
      for (size_t i = 4; i < x.size(); ++i) EXPECT_EQ(gate[i], x[i]) << IsaName(isa);
    }
  }
}

TEST(Glu, BitsDoNotDependOnThePlaceOrTheThreadsOrTheIsa) {
  const std::vector<float> up = RandomFloats(100003, 2), gate = RandomFloats(100003, 1);
  for (const Activation activation : kActivations) {
    std::vector<float> first = gate;
    Glu({AvailableIsas().front(), 1}, {activation, first, up});
    for (Isa isa : AvailableIsas()) {
      for (int num_threads : {1, 2, 3}) {
        std::vector<float> shared = gate;
        Glu({isa, num_threads}, {activation, shared, up});
        EXPECT_TRUE(SameBits(shared.data(), first.data(), 100003)) << IsaName(isa);
      }
      for (size_t i = 0; i < 100003; i += 997) {  // each alone
        float one = gate[i];
        Glu({isa, 1}, {activation, {&one, 1}, {&up[i], 1}});
        ASSERT_TRUE(SameBits(&one, &first[i], 1)) << IsaName(isa) << ", element " << i;
      }
    }
  }
}

TEST(SoftCapInPlace, IsNearTheReferenceAndTheSameOnEveryIsa) {
  constexpr float kCap = 30;
  for (int64_t n : kSizes) {
    std::vector<float> x = RandomFloats(n, 1);
    for (int64_t i = 0; i < n; ++i) x[i] *= i % 3 == 0 ? 0.01f : 20;
    std::vector<float> first = x;
    SoftCapInPlace({AvailableIsas().front(), 1}, first, kCap);
    for (int64_t i = 0; i < n; ++i) {
      const double expected = kCap * std::tanh(static_cast<double>(x[i]) / kCap);
      // tanh errs by 3 units in the last place, 6 roundings; a quotient and a product.
      ASSERT_NEAR(first[i], expected, 8 * kF32HalfUlp * std::fabs(expected)) << x[i];
    }
    for (Isa isa : AvailableIsas()) {
      std::vector<float> capped = x;
      SoftCapInPlace({isa, 2}, capped, kCap);
      EXPECT_TRUE(SameBits(capped.data(), first.data(), n)) << IsaName(isa);
    }
  }
}

TEST(ScaleInPlace, RoundsOnce) {
  for (Isa isa : AvailableIsas()) {
    for (int64_t n : kSizes) {
      std::vector<float> x = RandomFloats(n, 1);
      const std::vector<float> before = x;
      ScaleInPlace({isa, 2}, x, 0.1f);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], before[i] * 0.1f);
    }
  }
}

TEST(AddInPlace, RoundsAScaledSumOnce) {
  for (Isa isa : AvailableIsas()) {
    for (int64_t n : kSizes) {
      std::vector<float> x = RandomFloats(n, 1);
      const std::vector<float> before = x, y = RandomFloats(n, 2);
      AddInPlace({isa, 2}, x, y, 0.3f);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], std::fma(0.3f, y[i], before[i]));
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
