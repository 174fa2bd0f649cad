#include "base/flush_subnormals.h"

#include <bit>
#include <cstdint>
#include <string>

#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/flush_subnormals_test.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/fma-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

float FmaOfOne(float a, float b, float c) {
  const F32Tag d;
  return hn::GetLane(Fma(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

namespace kvick {
namespace {

class FlushedFma : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
    fma_ = KVICK_FOR_ISA(GetParam(), FmaOfOne);
  }

  // a * b + c
  float Fma(float a, float b, float c) const {
    const FlushSubnormals flush;
    return fma_(a, b, c);
  }

 private:
  float (*fma_)(float, float, float) = nullptr;
};

constexpr float kLeastNormal = 0x1p-126f, kSubnormal = 0x1p-130f;

TEST_P(FlushedFma, SubnormalInputsAreZero) {
  EXPECT_EQ(Fma(kSubnormal, 0x1p+20f, 0), 0.0f);
  EXPECT_EQ(Fma(0x1p+20f, -kSubnormal, 0x1p-120f), 0x1p-120f);
  EXPECT_EQ(Fma(1, kLeastNormal, kSubnormal), kLeastNormal);
}

TEST_P(FlushedFma, SubnormalResultsAreZeroOfTheirSign) {
  EXPECT_EQ(std::bit_cast<uint32_t>(Fma(0x1p-100f, 0x1p-30f, 0)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(Fma(-0x1p-100f, 0x1p-30f, 0)), 0x80000000u);
  EXPECT_EQ(Fma(0x1p-100f, 0x1p-26f, 0), kLeastNormal);
}

// Where machines differ: an exact result whose magnitude is in [2^-126 - 2^-151, 2^-126) rounds to
// the least normal number. x86 takes a result as subnormal after rounding, Arm before.
TEST_P(FlushedFma, ResultsThatRoundToTheLeastNormal) {
#if defined(__aarch64__)
  constexpr float kRoundedUp = 0;
#else
  constexpr float kRoundedUp = kLeastNormal;
#endif
  for (const float sign : {1.0f, -1.0f}) {
    const auto below_least_normal = [&](float a, float b) {
      return Fma(sign * a, -b, sign * kLeastNormal) * sign;
    };
    EXPECT_EQ(below_least_normal(0x1p-100f, 0x1p-50f), 0);
    EXPECT_EQ(below_least_normal(0x1p-100f, 0x1.000002p-51f), 0);
    EXPECT_EQ(below_least_normal(0x1p-100f, 0x1p-51f), kRoundedUp);
    EXPECT_EQ(below_least_normal(0x1p-100f, 0x1.fffffep-52f), kRoundedUp);
    EXPECT_EQ(below_least_normal(kLeastNormal, kLeastNormal), kRoundedUp);
    EXPECT_EQ(below_least_normal(0, kLeastNormal), kLeastNormal);
  }
}

INSTANTIATE_TEST_SUITE_P(, FlushedFma,
                         testing::Values(Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kScalar),
                         [](const auto& test) { return std::string(IsaName(test.param)); });

TEST(FlushSubnormals, RestoresWhatWasSet) {
  { const FlushSubnormals flush; }
  volatile float subnormal = kSubnormal;
  EXPECT_EQ(subnormal * 0x1p+10f, 0x1p-120f);
}

}  // namespace
}  // namespace kvick
#endif  // HWY_ONCE
