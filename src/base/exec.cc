#include "base/exec.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/threads.h"

namespace kvick {
namespace {

constexpr int kCanonicalVersion = 1;
constexpr int kTilesVersion = 1;

Result<Precision> ParsePrecision(std::string_view name) {
  if (name == "standard") return Precision::kStandard;
  if (name == "high") return Precision::kHigh;
  return Fail(ErrorCode::kInvalidArgument, "precision: expected standard or high, got \"{}\"",
              name);
}

}  // namespace

Result<Exec> MakeExec(const ExecOptions& options) {
  constexpr int kMaxThreads = 1024;
  KVICK_ASSIGN_OR_RETURN(const Isa isa, ParseIsa(options.isa, options.numerics));
  KVICK_ASSIGN_OR_RETURN(const Precision precision, ParsePrecision(options.precision));
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return Fail(ErrorCode::kInvalidArgument, "num_threads: expected 0 (all cores) to {}, got {}",
                kMaxThreads, options.num_threads);
  }
  return Exec{isa, options.num_threads > 0 ? options.num_threads : NumUsableCores(), precision};
}

ExecOptions OptionsOf(const Exec& exec) {
  return {.numerics = NumericOrderName(OrderOf(exec.isa)),
          .precision = exec.precision == Precision::kHigh ? "high" : "standard",
          .isa = IsaName(exec.isa),
          .num_threads = exec.num_threads};
}

std::string NumericsName(const Exec& exec) {
  const NumericOrder order = OrderOf(exec.isa);
  return fmt::format("{}{}-{}", NumericOrderName(order),
                     exec.precision == Precision::kHigh ? "-high" : "",
                     order == NumericOrder::kTiles ? kTilesVersion : kCanonicalVersion);
}

}  // namespace kvick
