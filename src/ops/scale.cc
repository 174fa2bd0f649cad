#include "ops/scale.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scale.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/f32x16-inl.h"
#include "base/tanh-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// x = function(x), a vector at a time; the last one is filled up with zeros.
template <class Function>
HWY_INLINE void ForEachVector(float* x, int64_t n, const Function& function) {
  const F32Tag d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(function(hn::LoadU(d, x + i)), d, x + i);
  if (i == n) return;
  float tail[kLanes] = {};
  std::copy(x + i, x + n, tail);
  hn::StoreU(function(hn::LoadU(d, tail)), d, tail);
  std::copy_n(tail, n - i, x + i);
}

void ScaleElements(float* x, float factor, int64_t n) {
  const F32Vector factors = hn::Set(F32Tag(), factor);
  ForEachVector(x, n, [&](F32Vector v) HWY_ATTR { return hn::Mul(v, factors); });
}

void SoftCapElements(float* x, float cap, int64_t n) {
  const F32Vector caps = hn::Set(F32Tag(), cap);
  ForEachVector(x, n, [&](F32Vector v) HWY_ATTR { return hn::Mul(caps, Tanh(hn::Div(v, caps))); });
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {
namespace {

template <class Function>
void ForEachPart(const Exec& exec, std::span<float> x, float number, Function* function) {
  ParallelRows(exec, static_cast<int64_t>(x.size()), 1, [&](int64_t begin, int64_t end) {
    function(x.data() + begin, number, end - begin);
  });
}

}  // namespace

void ScaleInPlace(const Exec& exec, std::span<float> x, float factor) {
  ForEachPart(exec, x, factor, KVICK_FOR_ISA(exec.isa, ScaleElements));
}

void SoftCapInPlace(const Exec& exec, std::span<float> x, float cap) {
  KVICK_CHECK(cap > 0);
  ForEachPart(exec, x, cap, KVICK_FOR_ISA(exec.isa, SoftCapElements));
}

}  // namespace kvick
#endif  // HWY_ONCE
