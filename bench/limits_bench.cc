// The limits of the machine, to compare the kernels with.

#include "bench_util.h"
#include "measure/caches.h"
#include "measure/matrix_limit.h"
#include "measure/read_limit.h"

namespace kvick {
namespace {

void BM_ReadLimit(benchmark::State& state) {
  ReadLimit limit = ReadLimit::Create(BytesBeyondCaches()).value();
  for (auto _ : state) limit.Pass(NumUsableCores());
  SetRates(state, static_cast<double>(limit.pass_bytes()), 0);
}
BENCHMARK(BM_ReadLimit)->UseRealTime()->Unit(benchmark::kMicrosecond);

template <DType kType>
void BM_MatrixLimit(benchmark::State& state) {
  const MatrixLimit limit(BenchExec(), kType);
  for (auto _ : state) limit.Pass();
  SetRates(state, 0, limit.flops_per_pass());
}
BENCHMARK_TEMPLATE(BM_MatrixLimit, DType::kBF16)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_TEMPLATE(BM_MatrixLimit, DType::kF32)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace kvick
