// kvick bench limits: what this machine reads from memory and multiplies at best, now. A row for
// each kind of multiplication that the isa has.

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "help.h"

namespace kvick::cli {
namespace {

// One thread and all of them, each held against all.
template <class MakeLimit>
Status TimeLimit(const MakeLimit& make_limit, const BenchLimit& memory, BenchReport& report) {
  const Exec all = report.setup.exec;
  std::vector<BenchCase> cases;
  for (const int num_threads : {1, all.num_threads}) {
    const BenchLimit limit = make_limit(Exec{all.isa, num_threads});
    BenchWork work;
    (limit.multiplication ? work.flops[*limit.multiplication] : work.bytes) = limit.work;
    cases.push_back({limit.name, Counted(num_threads, "thread"), work, limit.contender});
    if (all.num_threads == 1) break;
  }
  return report.Time(memory, std::move(cases));
}

Outcome RunLimits(const BenchOptions& options) {
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(options));
  KVICK_ASSIGN_OR_RETURN(const auto buffer, MakeReadBuffer(report.setup));
  const auto reading = [&](const Exec& exec) { return ReadBenchLimit(buffer, exec); };
  const BenchLimit memory = reading(report.setup.exec);
  KVICK_RETURN_IF_ERROR(TimeLimit(reading, memory, report));
  for (const Multiplication multiplication : MultiplicationsOf(report.setup.exec.isa)) {
    const auto multiplying = [&](const Exec& exec) {
      return MultiplyBenchLimit(exec, multiplication);
    };
    KVICK_RETURN_IF_ERROR(TimeLimit(multiplying, memory, report));
  }
  return report.Finish(options);
}

}  // namespace

Verb AddBenchLimits(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  options->AddTo(app);
  AddExample(app, "kvick bench limits --json");
  return [options] { return RunLimits(*options); };
}

}  // namespace kvick::cli
