#ifndef KVICK_BENCH_BENCH_UTIL_H_
#define KVICK_BENCH_BENCH_UTIL_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/exec.h"
#include "base/isa.h"
#include "base/random_numbers.h"
#include "base/threads.h"

namespace kvick {

// The best isa of this machine, on all cores.
inline Exec BenchExec() { return {BestIsa(), NumUsableCores()}; }

inline std::vector<float> RandomFloats(int64_t num) {
  std::vector<float> numbers(static_cast<size_t>(num));
  RandomNumbers{DType::kF32, num}.WriteTo(reinterpret_cast<std::byte*>(numbers.data()));
  return numbers;
}

inline void Require(const Status& status) { KVICK_CHECK(status.has_value()); }

// Reports what a pass reads or writes, and what it computes, as rates next to its time.
inline void SetRates(benchmark::State& state, double bytes_per_pass, double flops_per_pass) {
  const auto rate = [](double per_pass) {
    return benchmark::Counter(per_pass, benchmark::Counter::kIsIterationInvariantRate);
  };
  if (bytes_per_pass > 0) state.counters["bytes/s"] = rate(bytes_per_pass);
  if (flops_per_pass > 0) state.counters["FLOPS"] = rate(flops_per_pass);
}

}  // namespace kvick

#endif  // KVICK_BENCH_BENCH_UTIL_H_
