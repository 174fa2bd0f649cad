// Vectors of f32 as stored numbers. Compiled once per target.

#if defined(KVICK_BASE_SIMD_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_SIMD_STORE_INL_H_
#undef KVICK_BASE_SIMD_STORE_INL_H_
#else
#define KVICK_BASE_SIMD_STORE_INL_H_
#endif

#include <cstdint>

#include "base/simd_load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// The nearest bf16, ties to even; NaN stays NaN. The hardware's conversion flushes subnormals.
HWY_INLINE F32Vector RoundToBF16(F32Vector value) {
  const F32Tag d;
  const hn::RebindToUnsigned<F32Tag> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d32, 0x7fffu)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000u));
  const auto chosen = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(value)), quiet, rounded);
  return hn::BitCast(d, hn::And(chosen, hn::Set(d32, 0xffff0000u)));
}

// `out` may have any alignment that its type has.
HWY_INLINE void StoreBF16(F32Vector value, uint16_t* out) {
  const hn::RebindToUnsigned<F32Tag> d32;
  const hn::Rebind<uint16_t, F32Tag> d16;
  const auto bits = hn::BitCast(d32, RoundToBF16(value));
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
