// The limits of the machine, to compare the kernels with.

#include <string>

#include "bench_util.h"
#include "measure/caches.h"
#include "measure/multiply_limit.h"
#include "measure/read_limit.h"

namespace kvick {
namespace {

void BM_ReadLimit(benchmark::State& state) {
  ReadLimit limit = ReadLimit::Create(BytesBeyondCaches()).value();
  for (auto _ : state) limit.Pass(NumUsableCores());
  SetRates(state, static_cast<double>(limit.pass_bytes()), 0);
}
BENCHMARK(BM_ReadLimit)->UseRealTime()->Unit(benchmark::kMicrosecond);

void BM_MultiplyLimit(benchmark::State& state, Multiplication multiplication) {
  const MultiplyLimit limit(BenchExec(), multiplication);
  for (auto _ : state) limit.Pass();
  SetRates(state, 0, limit.flops_per_pass());
}

const bool kRegistered = [] {
  for (const Multiplication multiplication : MultiplicationsOf(BestIsa())) {
    const std::string name = "BM_MultiplyLimit/" + std::string(MultiplicationName(multiplication));
    benchmark::RegisterBenchmark(name.c_str(), BM_MultiplyLimit, multiplication)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace kvick
