#include "ops/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/f32x16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

constexpr int64_t kDoubleLanes = hn::MaxLanes(hn::ScalableTag<double>());
constexpr int64_t kDoubleParts = 16 / kDoubleLanes;

// Sixteen lanes in f64: lane i adds the squares of x[i], x[16 + i], ... in ascending order. The
// square of an f32 is exact in f64, so it makes no difference whether the addition is fused.
struct SquareSums {
  hn::Vec<hn::ScalableTag<double>> part[kDoubleParts];

  void Add(const float* x) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> d_f32;
    for (int64_t p = 0; p < kDoubleParts; ++p) {
      const auto v = hn::PromoteTo(d, hn::LoadU(d_f32, x + p * kDoubleLanes));
      part[p] = hn::Add(hn::Mul(v, v), part[p]);
    }
  }
};

double SumOfSquares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  SquareSums sums;
  for (auto& part : sums.part) part = hn::Zero(d);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) sums.Add(x + i);
  if (i < n) {
    float tail[16] = {};
    std::copy(x + i, x + n, tail);
    sums.Add(tail);
  }
  for (int64_t half = kDoubleParts / 2; half > 0; half /= 2) {
    for (int64_t p = 0; p < half; ++p) sums.part[p] = hn::Add(sums.part[p], sums.part[p + half]);
  }
  return SumLanes(d, sums.part[0]);
}

void NormRow(const RmsNormArgs& args, int64_t row) {
  const int64_t n = args.num_cols;
  const float* x = args.x + row * n;
  float* out = args.out + row * n;
  const double mean_square = SumOfSquares(x, n) / static_cast<double>(n);
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean_square + args.epsilon));
  const F32Tag d;
  const auto scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), scales);
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, args.weight + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] * scale * args.weight[i];
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void RmsNorm(const Exec& exec, const RmsNormArgs& args) {
  KVICK_CHECK(args.num_tokens >= 0 && args.num_cols >= 1 && args.epsilon >= 0);
  const auto norm_row = KVICK_FOR_ISA(exec.isa, NormRow);
  ParallelRows(exec, args.num_tokens, args.num_cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) norm_row(args, row);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
