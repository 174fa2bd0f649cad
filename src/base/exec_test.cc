#include "base/exec.h"

#include <gtest/gtest.h>

namespace kvick {
namespace {

TEST(Exec, TheNameOfTheNumericsIsThatOfOrderAndPrecision) {
  EXPECT_EQ(NumericsName({Isa::kScalar, 1}), "canonical-1");
  EXPECT_EQ(NumericsName({Isa::kAvx2, 2}), "canonical-1");
  EXPECT_EQ(NumericsName({Isa::kScalar, 1, Precision::kHigh}), "canonical-high-1");
  EXPECT_EQ(NumericsName({Isa::kAmx, 1}), "tiles-1");
  EXPECT_EQ(NumericsName({Isa::kAmxEmulated, 1, Precision::kHigh}), "tiles-high-1");
}

TEST(Exec, TakesOptionsByName) {
  const Exec exec = MakeExec({.precision = "high", .isa = "scalar", .num_threads = 3}).value();
  EXPECT_EQ(exec.isa, Isa::kScalar);
  EXPECT_EQ(exec.precision, Precision::kHigh);
  EXPECT_EQ(exec.num_threads, 3);
  EXPECT_GE(MakeExec({}).value().num_threads, 1);
}

TEST(Exec, OptionsOfItGiveItAgain) {
  for (const Isa isa : AvailableIsas()) {
    for (const Precision precision : {Precision::kStandard, Precision::kHigh}) {
      const Exec exec = MakeExec(OptionsOf({isa, 3, precision})).value();
      EXPECT_EQ(exec.isa, isa);
      EXPECT_EQ(exec.num_threads, 3);
      EXPECT_EQ(exec.precision, precision);
    }
  }
}

TEST(Exec, RefusesWhatItDoesNotKnow) {
  for (const ExecOptions& options :
       {ExecOptions{.numerics = "exact"}, ExecOptions{.precision = "low"},
        ExecOptions{.isa = "mmx"}, ExecOptions{.num_threads = -1},
        ExecOptions{.num_threads = 1025}}) {
    EXPECT_EQ(MakeExec(options).error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kvick
