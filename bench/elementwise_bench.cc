// The operations between the matrix products: norms, RoPE, SwiGLU, additions. Some tokens of 4096.

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "bench_util.h"
#include "ops/add.h"
#include "ops/glu.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace kvick {
namespace {

constexpr int64_t kHidden = 4096, kIntermediate = 14336, kHeads = 32, kHeadDim = 128;
constexpr double kFloatBytes = sizeof(float);

void BM_RmsNorm(benchmark::State& state) {
  const int64_t num_tokens = state.range(0);
  const std::vector<float> x = RandomFloats(num_tokens * kHidden), weight = RandomFloats(kHidden);
  std::vector<float> out(x.size());
  for (auto _ : state) {
    RmsNorm(BenchExec(), {x.data(), weight.data(), 1e-5f, num_tokens, kHidden, out.data()});
  }
  SetRates(state, 2 * kFloatBytes * static_cast<double>(x.size()), 0);
}

void BM_Rope(benchmark::State& state) {
  const int64_t num_tokens = state.range(0);
  std::vector<float> x = RandomFloats(num_tokens * kHeads * kHeadDim);
  std::vector<float> cos(static_cast<size_t>(num_tokens * kHeadDim / 2)), sin = cos;
  std::vector<int64_t> positions(static_cast<size_t>(num_tokens));
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<double> frequencies(kHeadDim / 2, 0.01);
  ComputeRopeTable({frequencies, positions, 1.0, cos.data(), sin.data()});
  for (auto _ : state) {
    ApplyRope(BenchExec(),
              {x.data(), cos.data(), sin.data(), num_tokens, kHeads, kHeadDim, kHeadDim});
  }
  SetRates(state, 2 * kFloatBytes * static_cast<double>(x.size()), 0);
}

void BM_Glu(benchmark::State& state) {
  const std::vector<float> up = RandomFloats(state.range(0) * kIntermediate);
  const std::vector<float> gate = up;
  std::vector<float> out = gate;
  for (auto _ : state) {
    state.PauseTiming();
    out = gate;  // applied to its own result again and again it would become denormal
    state.ResumeTiming();
    Glu(BenchExec(), {Activation::kSilu, out, up});
  }
  SetRates(state, 3 * kFloatBytes * static_cast<double>(up.size()), 0);
}

void BM_Add(benchmark::State& state) {
  const std::vector<float> y = RandomFloats(state.range(0) * kHidden);
  std::vector<float> x = y;
  for (auto _ : state) AddInPlace(BenchExec(), x, y);
  SetRates(state, 3 * kFloatBytes * static_cast<double>(y.size()), 0);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("tokens")->Arg(1)->Arg(512);
  bench->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(BM_RmsNorm)->Apply(Sizes);
BENCHMARK(BM_Rope)->Apply(Sizes);
BENCHMARK(BM_Glu)->Apply(Sizes);
BENCHMARK(BM_Add)->Apply(Sizes);

}  // namespace
}  // namespace kvick
