#include "ops/swiglu.h"

#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/contrib/algo/transform-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// With e = exp(-|x|), which never overflows, sigmoid(x) is 1 / (1 + e) or, below zero, e / (1 + e).
template <class D, class V>
HWY_INLINE V Silu(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, e)));
}

void SwiGluElements(float* gate, const float* up, int64_t n) {
  hn::Transform1(hn::ScalableTag<float>(), gate, static_cast<size_t>(n), up,
                 [](auto d, auto g, auto u) HWY_ATTR { return hn::Mul(Silu(d, g), u); });
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
