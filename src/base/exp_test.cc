#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/flush_subnormals.h"
#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/exp_test.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/exp-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

float ExpOfOne(float x) { return hn::GetLane(ExpOfNonPositive(hn::Set(F32Tag(), x))); }

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

namespace kvick {
namespace {

class ExpOfNonPositive : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
    exp_ = KVICK_FOR_ISA(GetParam(), ExpOfOne);
  }

  float (*exp_)(float) = nullptr;
  float (*scalar_exp_)(float) = KVICK_FOR_ISA(Isa::kScalar, ExpOfOne);
};

constexpr uint32_t kMinusZero = 0x80000000;
constexpr uint32_t kLast = 0xc2aeac4f;  // -87.3365, the last with a normal result

TEST_P(ExpOfNonPositive, IsWithinTwoUnitsInTheLastPlace) {
  for (uint32_t bits = kMinusZero; bits <= kLast; bits += 97) {
    const auto x = std::bit_cast<float>(bits);
    const double wanted = std::exp(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
    ASSERT_NEAR(exp_(x), wanted, 2 * unit) << x;
  }
  EXPECT_EQ(exp_(0.0f), 1.0f);
  EXPECT_EQ(exp_(-0.0f), 1.0f);
}

// Kernels flush subnormals, which changes no bit: an argument may be one, a result is none.
TEST_P(ExpOfNonPositive, IsTheSameBitsOnEveryTarget) {
  for (uint32_t bits = kMinusZero; bits <= kLast + 4096; bits += 97) {
    const auto x = std::bit_cast<float>(bits);
    const float wanted = scalar_exp_(x);
    ASSERT_EQ(std::bit_cast<uint32_t>(exp_(x)), std::bit_cast<uint32_t>(wanted)) << x;
    const FlushSubnormals flush;
    ASSERT_EQ(std::bit_cast<uint32_t>(exp_(x)), std::bit_cast<uint32_t>(wanted)) << x;
  }
}

TEST_P(ExpOfNonPositive, IsZeroWhereTheResultWouldBeDenormal) {
  for (const float x : {-87.4f, -1000.0f, -1e30f, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(exp_(x), 0.0f) << x;
  }
}

TEST_P(ExpOfNonPositive, KeepsANan) {
  EXPECT_TRUE(std::isnan(exp_(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp_(std::bit_cast<float>(0xffffffffu))));  // what KvFill::kNan writes
}

INSTANTIATE_TEST_SUITE_P(, ExpOfNonPositive,
                         testing::Values(Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kScalar),
                         [](const auto& test) { return std::string(IsaName(test.param)); });

}  // namespace
}  // namespace kvick
#endif  // HWY_ONCE
