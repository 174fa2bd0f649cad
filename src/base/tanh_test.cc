#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/flush_subnormals.h"
#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/tanh_test.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/tanh-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

float TanhOfOne(float x) { return hn::GetLane(Tanh(hn::Set(F32Tag(), x))); }

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

namespace kvick {
namespace {

class TanhTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
    tanh_ = KVICK_FOR_ISA(GetParam(), TanhOfOne);
  }

  float (*tanh_)(float) = nullptr;
  float (*scalar_tanh_)(float) = KVICK_FOR_ISA(Isa::kScalar, TanhOfOne);
};

constexpr uint32_t kLeastNormal = 0x00800000, kInfinity = 0x7f800000, kMinus = 0x80000000;
constexpr uint32_t kStep = 977;

TEST_P(TanhTest, IsWithinThreeUnitsInTheLastPlace) {
  for (uint32_t bits = kLeastNormal; bits <= kInfinity; bits += kStep) {
    const auto x = std::bit_cast<float>(bits);
    const double wanted = std::tanh(static_cast<double>(x));
    const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
    ASSERT_NEAR(tanh_(x), wanted, 3 * unit) << x;
    ASSERT_EQ(tanh_(-x), -tanh_(x)) << x;
    ASSERT_LE(tanh_(x), 1.0f) << x;
  }
  for (const float x : {0.0f, -0.0f}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(tanh_(x)), std::bit_cast<uint32_t>(x));
  }
  EXPECT_EQ(tanh_(std::numeric_limits<float>::infinity()), 1.0f);
}

// Kernels flush subnormals.
TEST_P(TanhTest, IsTheSameBitsOnEveryTarget) {
  const FlushSubnormals flush;
  for (uint32_t magnitude = 0; magnitude <= kInfinity; magnitude += kStep) {
    for (const uint32_t bits : {magnitude, magnitude | kMinus}) {
      const auto x = std::bit_cast<float>(bits);
      ASSERT_EQ(std::bit_cast<uint32_t>(tanh_(x)), std::bit_cast<uint32_t>(scalar_tanh_(x))) << x;
    }
  }
}

TEST_P(TanhTest, KeepsANan) {
  EXPECT_TRUE(std::isnan(tanh_(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(tanh_(std::bit_cast<float>(0xffffffffu))));  // what KvFill::kNan writes
}

INSTANTIATE_TEST_SUITE_P(, TanhTest,
                         testing::Values(Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kScalar),
                         [](const auto& test) { return std::string(IsaName(test.param)); });

}  // namespace
}  // namespace kvick
#endif  // HWY_ONCE
