#include "ops/glu.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/glu.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/exp-inl.h"
#include "base/f32x16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// x / (1 + exp(-u)). With e = exp(-|u|), which never overflows, 1 / (1 + exp(-u)) is 1 / (1 + e)
// or, below zero, e / (1 + e).
HWY_INLINE F32Vector MulSigmoid(F32Vector x, F32Vector u) {
  const F32Tag d;
  const F32Vector one = hn::Set(d, 1.0f);
  const F32Vector e = ExpOfNonPositive(hn::Neg(hn::Abs(u)));
  const F32Vector numerator = hn::IfThenElse(hn::Lt(u, hn::Zero(d)), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, e)));
}

struct Silu {
  HWY_INLINE F32Vector operator()(F32Vector x) const { return MulSigmoid(x, x); }
};

struct GeluTanh {
  HWY_INLINE F32Vector operator()(F32Vector x) const {
    const F32Tag d;
    const F32Vector twice_root = hn::Set(d, 1.59576912f);                       // 2 sqrt(2 / pi)
    const F32Vector cubic = hn::Mul(hn::Mul(x, x), hn::Set(d, 0.0713548163f));  // that * 0.044715
    return MulSigmoid(x, hn::Mul(x, hn::Add(twice_root, cubic)));
  }
};

template <class Function>
HWY_INLINE void GluVector(float* gate, const float* up) {
  const F32Tag d;
  hn::StoreU(hn::Mul(Function()(hn::LoadU(d, gate)), hn::LoadU(d, up)), d, gate);
}

template <class Function>
HWY_INLINE void GluElements(float* gate, const float* up, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) GluVector<Function>(gate + i, up + i);
  if (i == n) return;
  float gate_tail[kLanes] = {}, up_tail[kLanes] = {};
  std::copy(gate + i, gate + n, gate_tail);
  std::copy(up + i, up + n, up_tail);
  GluVector<Function>(gate_tail, up_tail);
  std::copy_n(gate_tail, n - i, gate + i);
}

void SiluElements(float* gate, const float* up, int64_t n) { GluElements<Silu>(gate, up, n); }

void GeluTanhElements(float* gate, const float* up, int64_t n) {
  GluElements<GeluTanh>(gate, up, n);
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void Glu(const Exec& exec, const GluArgs& args) {
  KVICK_CHECK(args.gate.size() == args.up.size());
  const auto glu = args.activation == Activation::kSilu ? KVICK_FOR_ISA(exec.isa, SiluElements)
                                                        : KVICK_FOR_ISA(exec.isa, GeluTanhElements);
  ParallelRows(exec, static_cast<int64_t>(args.gate.size()), 1, [&](int64_t begin, int64_t end) {
    glu(args.gate.data() + begin, args.up.data() + begin, end - begin);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
