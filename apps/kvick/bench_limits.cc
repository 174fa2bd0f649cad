// kvick bench limits: what this machine reads from memory and multiplies at best, now.

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "help.h"

namespace kvick::cli {
namespace {

struct LimitsOptions : BenchOptions {
  std::string type = "bf16";
};

// One thread and all of them, each held against all.
Status TimeLimit(const BenchLimit& one, const BenchLimit& all, BenchReport& report) {
  std::vector<BenchCase> cases;
  cases.push_back({one.name, Counted(1, "thread"), one.work, one.contender});
  const int num_threads = report.setup.exec.num_threads;
  if (num_threads > 1) {
    cases.push_back({all.name, Counted(num_threads, "thread"), all.work, all.contender});
  }
  return report.Time(all, std::move(cases));
}

Status RunLimits(const LimitsOptions& options) {
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(options));
  const Exec all = report.setup.exec, one = {all.isa, 1};
  KVICK_ASSIGN_OR_RETURN(const auto buffer, MakeReadBuffer(report.setup));
  KVICK_RETURN_IF_ERROR(
      TimeLimit(ReadBenchLimit(buffer, one), ReadBenchLimit(buffer, all), report));
  const DType dtype = ParseDType(options.type);
  KVICK_RETURN_IF_ERROR(
      TimeLimit(MatrixBenchLimit(one, dtype), MatrixBenchLimit(all, dtype), report));
  options.json ? report.PrintJson() : report.Print();
  return {};
}

}  // namespace

Verb AddBenchLimits(CLI::App& app) {
  auto options = std::make_shared<LimitsOptions>();
  AddWeightTypeOption(app, options->type);
  options->AddTo(app);
  AddExample(app, "kvick bench limits --json");
  return [options] { return RunLimits(*options); };
}

}  // namespace kvick::cli
