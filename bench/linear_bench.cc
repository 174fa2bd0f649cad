// Tokens times a weight matrix of 4096 x 4096. The matrices take 256 MiB, so they come from memory.

#include <vector>

#include "base/checked_math.h"
#include "base/memory.h"
#include "bench_util.h"
#include "ops/linear.h"
#include "quant/random_weights.h"

namespace kvick {
namespace {

constexpr int64_t kWidth = 4096;
constexpr int64_t kWeightBytes = int64_t{256} << 20;

template <WeightType kType>
void BM_Linear(benchmark::State& state) {
  const Exec exec = BenchExec();
  const int64_t num_tokens = state.range(0);
  const int64_t matrix_bytes = kWidth * *WeightBytes(kType, kWidth);
  const int64_t num_matrices = CeilDiv(kWeightBytes, matrix_bytes);
  const MappedRegion weights =
      MappedRegion::Create(num_matrices * matrix_bytes, Backing::kUpFront).value();
  RandomWeights{kType, num_matrices * kWidth * kWidth, 1.0 / 64, 1, exec.num_threads}.WriteTo(
      weights.data());
  const std::vector<float> x = RandomFloats(num_tokens * kWidth);
  std::vector<float> y(x.size());
  const int64_t scratch_bytes = LinearScratchBytes(exec, kType, num_tokens, kWidth);
  const MappedRegion scratch = MappedRegion::Create(scratch_bytes + 1, Backing::kUpFront).value();
  int64_t pass = 0;
  for (auto _ : state) {
    const MatrixView w{weights.data() + pass++ % num_matrices * matrix_bytes, kType, kWidth,
                       kWidth};
    Linear(exec, {w, nullptr, x.data(), num_tokens, y.data()},
           {scratch.data(), static_cast<size_t>(scratch_bytes)});
  }
  SetRates(state, static_cast<double>(matrix_bytes),
           2.0 * kWidth * kWidth * static_cast<double>(num_tokens));
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("tokens")->Arg(1)->Arg(4)->Arg(16)->Arg(512);
  bench->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK_TEMPLATE(BM_Linear, WeightType::kBF16)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, WeightType::kF16)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, WeightType::kF32)->Apply(Sizes);
BENCHMARK_TEMPLATE(BM_Linear, WeightType::kQ8_0)->Apply(Sizes);

}  // namespace
}  // namespace kvick
