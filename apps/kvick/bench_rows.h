#ifndef KVICK_APPS_KVICK_BENCH_ROWS_H_
#define KVICK_APPS_KVICK_BENCH_ROWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/exec.h"
#include "bench.h"
#include "kvick/status.h"
#include "measure/interleaved.h"
#include "measure/read_limit.h"

namespace kvick::cli {

// What a pass is counted in.
enum class WorkUnit { kBytes, kFlops };

// One way to do something, to be timed.
struct BenchCase {
  std::string name;     // what: "decode"
  std::string variant;  // in which way: "paged 16"
  double work = 0;      // of a pass, in the unit of the limit
  Contender contender{};
  double num_tokens = 0;  // that a pass computes; 0: it computes no tokens
};

// What the machine does at best in the same unit: another contender.
struct BenchLimit {
  std::string name;  // "read", "matrix"
  WorkUnit unit = WorkUnit::kBytes;
  double work = 0;  // of a pass
  Contender contender{};
};

struct BenchRow {
  std::string name;
  std::string variant;
  std::string limit;
  WorkUnit unit = WorkUnit::kBytes;
  double work = 0;
  double num_tokens = 0;
  Timing timing;
  double share = 0;  // of the limit's rate, in the same rounds

  double rate() const { return work / timing.median_us() / 1e3; }  // 10^9 a second
};

struct MeasuredLimit {
  double work = 0;  // of a pass
  Timing timing;    // the rounds of all rows

  double rate() const { return work / timing.median_us() / 1e3; }  // 10^9 a second
};

struct BenchRatio {
  std::string name;
  double value = 0;
};

// How a bench is carried out.
struct BenchSetup {
  Exec exec;
  int64_t working_set_bytes = 0;
  double row_seconds = 0;

  static Result<BenchSetup> From(const BenchOptions& options);
};

// What was measured. Limits that were not are absent.
struct BenchReport {
  BenchSetup setup;
  std::map<std::string, MeasuredLimit> limits;  // by name
  std::vector<BenchRow> rows;
  std::vector<BenchRatio> ratios;

  // Times the cases in turns with the limit, and adds a row for each. Errors: of a contender.
  Status Time(const BenchLimit& limit, std::vector<BenchCase> cases);

  // How fast row `a` is beside row `b`, in the same rounds. REQUIRES: timed together.
  void AddRatio(std::string ratio_name, const BenchRow& a, const BenchRow& b);

  void Print() const;      // aligned, for people
  void PrintJson() const;  // one object
};

// Processor, implementation and threads, for people and for programs.
std::string MachineLine(const BenchSetup& setup);
nlohmann::json MachineJson(const BenchSetup& setup);
// The same of ratios.
void PrintRatios(std::span<const BenchRatio> ratios);
nlohmann::json RatiosJson(std::span<const BenchRatio> ratios);

// What plain reads go through. Errors: exhausted.
Result<std::shared_ptr<ReadLimit>> MakeReadBuffer(const BenchSetup& setup);
// Plain reads of memory.
BenchLimit ReadBenchLimit(std::shared_ptr<ReadLimit> buffer, const Exec& exec);
// Multiply-adds of what the kernels use for that type.
BenchLimit MatrixBenchLimit(const Exec& exec, DType dtype);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_ROWS_H_
