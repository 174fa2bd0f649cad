#ifndef KVICK_APPS_KVICK_BENCH_H_
#define KVICK_APPS_KVICK_BENCH_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "cli.h"
#include "kvick/exec.h"
#include "kvick/tensor.h"
#include "quant/weight_format.h"

// The options that the verbs of `kvick bench` share. Each verb checks the results of what it
// measures before it measures the time, goes through more data than the caches hold, and prints
// rows (bench_rows.h).
// With --strict, rows that cannot be trusted are a failure with the exit code kUntrusted.
namespace kvick::cli {

Verb AddBenchAppend(CLI::App& app);
Verb AddBenchAttention(CLI::App& app);
Verb AddBenchCompare(CLI::App& app);
Verb AddBenchLimits(CLI::App& app);
Verb AddBenchLinear(CLI::App& app);
Verb AddBenchModel(CLI::App& app);
Verb AddBenchServing(CLI::App& app);

struct BenchOptions {
  ExecOptions exec;
  double row_seconds = 2;
  uint64_t working_set_bytes = 0;  // 0: what exceeds the caches of the machine
  bool json = false;
  bool strict = false;

  void AddTo(CLI::App& app);        // all of them
  void AddTimingTo(CLI::App& app);  // but how kernels are carried out
};

CLI::Option* AddStrictFlag(CLI::App& app, bool& strict);
// --geometry: the name of a known model.
CLI::Option* AddGeometryOption(CLI::App& app, std::string& name);
// --type: the name of a weight format.
CLI::Option* AddWeightTypeOption(CLI::App& app, std::string& name);
// -ctk: of the cache, "bf16", "f16" or "f32".
CLI::Option* AddCacheTypeOption(CLI::App& app, std::string& name);

// REQUIRES: the name of a WeightFormat.
WeightType ParseWeightType(std::string_view name);
// REQUIRES: a DTypeName.
DType ParseDType(std::string_view name);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_H_
