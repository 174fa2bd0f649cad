#ifndef KVICK_APPS_KVICK_BENCH_ROWS_H_
#define KVICK_APPS_KVICK_BENCH_ROWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/exec.h"
#include "bench.h"
#include "bench_limit.h"
#include "kvick/status.h"
#include "measure/interleaved.h"
#include "measure/quiet_ratio.h"

namespace kvick::cli {

// One way to do something, to be timed.
struct BenchCase {
  std::string name;     // what: "decode"
  std::string variant;  // in which way: "paged 16"
  BenchWork work{};     // of a pass
  Contender contender{};
  double num_tokens = 0;  // that a pass computes; 0: it computes no tokens
};

struct BenchRow {
  std::string name;
  std::string variant;
  BenchWork work;
  double num_tokens = 0;
  Timing timing;
  std::string limit;  // that the share is of
  QuietRatio share;   // the time of the limit, of that of the row

  double gbps() const { return work.bytes / timing.quiet_us() / 1e3; }
  double gflops() const { return work.total_flops() / timing.quiet_us() / 1e3; }
  double tokens_per_s() const { return num_tokens / timing.quiet_us() * 1e6; }

  // Whether the share can be one: nothing is faster than its limit, but for errors of measurement.
  bool has_share() const;
  // Why the row cannot be trusted, as one sentence without its end; empty if it can.
  std::string Distrust() const;
};

struct MeasuredLimit {
  std::optional<Multiplication> multiplication;
  double work = 0;  // of a pass
  Timing timing;    // the rounds of all rows

  double rate() const { return work / timing.quiet_us() / 1e3; }  // 10^9 a second
};

struct BenchRatio {
  std::string name;
  double value = 0;
  double spread = 0;
  std::string distrust;  // empty: can be trusted
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

  // Times the cases in turns with `memory` and with the multiplications that may bind them, and
  // adds a row for each. Errors: of a contender.
  Status Time(const BenchLimit& memory, std::vector<BenchCase> cases);

  // How fast row `a` is beside row `b`. REQUIRES: timed together.
  void AddRatio(std::string ratio_name, const BenchRow& a, const BenchRow& b);

  // Prints everything, for people or as one JSON object.
  Outcome Finish(const BenchOptions& options) const;
};

// What remains to be said of rows and ratios after they are printed.
struct TrustCount {
  int64_t num_untrusted = 0;
  int64_t num_all = 0;

  // A failure if one cannot be trusted.
  Outcome Strictly() const;
};

// Processor, implementation and threads, for people and for programs.
std::string MachineLine(const BenchSetup& setup);
nlohmann::json MachineJson(const BenchSetup& setup);
// The same of ratios.
void PrintRatios(std::span<const BenchRatio> ratios);
nlohmann::json RatiosJson(std::span<const BenchRatio> ratios);
// "untrusted" and why, for JSON: {"trusted": false, "distrust": "..."}.
void AddTrust(nlohmann::json& json, const std::string& distrust);

// What plain reads go through. Errors: exhausted.
Result<std::shared_ptr<ReadLimit>> MakeReadBuffer(const BenchSetup& setup);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_ROWS_H_
