#include "ops/rms_norm.h"

#include <cmath>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/sum_lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

double SumOfSquares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> d_f32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::PromoteTo(d, hn::LoadU(d_f32, x + i));
    sums = hn::MulAdd(v, v, sums);
  }
  double sum = SumLanes(d, sums);
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void NormRow(const RmsNormArgs& args, int64_t row) {
  const int64_t n = args.num_cols;
  const float* x = args.x + row * n;
  float* out = args.out + row * n;
  const double mean_square = SumOfSquares(x, n) / static_cast<double>(n);
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean_square + args.epsilon));
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
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
