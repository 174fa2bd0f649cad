#include "ops/add.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/f32x16-inl.h"
#include "base/fma-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

HWY_INLINE void AddVector(float* x, const float* y, F32Vector scale) {
  const F32Tag d;
  hn::StoreU(Fma(hn::LoadU(d, y), scale, hn::LoadU(d, x)), d, x);
}

void AddElements(float* x, const float* y, float scale, int64_t n) {
  const F32Vector scales = hn::Set(F32Tag(), scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) AddVector(x + i, y + i, scales);
  if (i == n) return;
  float x_tail[kLanes] = {}, y_tail[kLanes] = {};
  std::copy(x + i, x + n, x_tail);
  std::copy(y + i, y + n, y_tail);
  AddVector(x_tail, y_tail, scales);
  std::copy_n(x_tail, n - i, x + i);
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void AddInPlace(const Exec& exec, std::span<float> x, std::span<const float> y, float scale) {
  KVICK_CHECK(x.size() == y.size());
  const auto add = KVICK_FOR_ISA(exec.isa, AddElements);
  ParallelRows(exec, static_cast<int64_t>(x.size()), 1, [&](int64_t begin, int64_t end) {
    add(x.data() + begin, y.data() + begin, scale, end - begin);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
