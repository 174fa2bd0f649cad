// Sixteen lanes of f32, on vectors of any width: the unit of the canonical order
// (docs/numerics.md). Compiled once per target.

#if defined(KVICK_BASE_F32X16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_F32X16_INL_H_
#undef KVICK_BASE_F32X16_INL_H_
#else
#define KVICK_BASE_F32X16_INL_H_
#endif

#include <cstdint>

#include "base/fma-inl.h"
#include "base/sum_lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// Lanes of a vector of this target, and vectors that hold the sixteen lanes. Lane i is lane
// i % kLanes of part i / kLanes.
inline constexpr int64_t kLanes = hn::MaxLanes(F32Tag());
inline constexpr int64_t kParts = 16 / kLanes;

struct F32x16 {
  F32Vector part[kParts];
};

HWY_INLINE F32x16 ZeroF32x16() {
  F32x16 zero;
  for (F32Vector& part : zero.part) part = hn::Zero(F32Tag());
  return zero;
}

// The sum of the lanes: lane i + lane i + 8 for each i below 8, then i + 4, i + 2, i + 1.
// SumParts is the beginning of it, down to one vector.
HWY_INLINE F32Vector SumParts(F32x16 v) {
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) v.part[i] = hn::Add(v.part[i], v.part[i + half]);
  }
  return v.part[0];
}

HWY_INLINE float SumLanes(const F32x16& v) { return SumLanes(F32Tag(), SumParts(v)); }

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
