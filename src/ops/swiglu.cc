#include "ops/swiglu.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/exp-inl.h"
#include "base/f32x16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// With e = exp(-|x|), which never overflows, sigmoid(x) is 1 / (1 + e) or, below zero, e / (1 + e).
HWY_INLINE F32Vector Silu(F32Vector x) {
  const F32Tag d;
  const F32Vector one = hn::Set(d, 1.0f);
  const F32Vector e = ExpOfNonPositive(hn::Neg(hn::Abs(x)));
  const F32Vector numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, e)));
}

HWY_INLINE void SwiGluVector(float* gate, const float* up) {
  const F32Tag d;
  hn::StoreU(hn::Mul(Silu(hn::LoadU(d, gate)), hn::LoadU(d, up)), d, gate);
}

void SwiGluElements(float* gate, const float* up, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) SwiGluVector(gate + i, up + i);
  if (i == n) return;
  float gate_tail[kLanes] = {}, up_tail[kLanes] = {};
  std::copy(gate + i, gate + n, gate_tail);
  std::copy(up + i, up + n, up_tail);
  SwiGluVector(gate_tail, up_tail);
  std::copy_n(gate_tail, n - i, gate + i);
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void SwiGlu(const Exec& exec, std::span<float> gate, std::span<const float> up) {
  KVICK_CHECK(gate.size() == up.size());
  const auto swiglu = KVICK_FOR_ISA(exec.isa, SwiGluElements);
  ParallelRows(exec, static_cast<int64_t>(gate.size()), 1, [&](int64_t begin, int64_t end) {
    swiglu(gate.data() + begin, up.data() + begin, end - begin);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
