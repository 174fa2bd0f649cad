// Stored numbers as f32 vectors. Compiled once per target.

#if defined(KVICK_BASE_SIMD_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_SIMD_LOAD_INL_H_
#undef KVICK_BASE_SIMD_LOAD_INL_H_
#else
#define KVICK_BASE_SIMD_LOAD_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "hwy/highway.h"
#include "kvick/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32Tag = hn::ScalableTag<float>;
using F32Vector = hn::Vec<F32Tag>;

// Consecutive elements from `data` on, one a lane, exactly. `data` may have any alignment.
template <DType kType>
HWY_INLINE F32Vector LoadF32(F32Tag d, const std::byte* data);

template <>
HWY_INLINE F32Vector LoadF32<DType::kF32>(F32Tag d, const std::byte* data) {
#if HWY_TARGET == HWY_SCALAR
  float value;
  std::memcpy(&value, data, sizeof(value));
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const float*>(data));
#endif
}

template <>
HWY_INLINE F32Vector LoadF32<DType::kBF16>(F32Tag d, const std::byte* data) {
  const hn::Rebind<uint16_t, F32Tag> d16;
  const hn::RebindToUnsigned<F32Tag> d32;
#if HWY_TARGET == HWY_SCALAR
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  const auto half = hn::Set(d16, bits);
#else
  const auto half = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(data));
#endif
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, half)));
}

template <>
HWY_INLINE F32Vector LoadF32<DType::kF16>(F32Tag d, const std::byte* data) {
#if HWY_TARGET == HWY_SCALAR  // whose PromoteTo makes numbers of infinities and NaNs
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  return hn::Set(d, F16ToF32(bits));
#else
  const hn::Rebind<hwy::float16_t, F32Tag> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(data)));
#endif
}

// Of an element of f32, f16 or bf16.
template <DType kType>
inline constexpr int64_t kElementBytes = kType == DType::kF32 ? 4 : 2;

// Two vectors of consecutive elements.
struct F32Pair {
  F32Vector first, second;
};

// Whether a pair holds the elements of even and of odd index, not the first and the second half:
// two bf16 lie in one 32-bit lane, and are parted by one shift and one mask.
template <DType kType>
inline constexpr bool kPairIsEvenOdd = kType == DType::kBF16;

template <DType kType>
HWY_INLINE F32Pair LoadF32Pair(F32Tag d, const std::byte* data) {
  if constexpr (kPairIsEvenOdd<kType>) {
    const hn::RebindToUnsigned<F32Tag> d32;
#if HWY_TARGET == HWY_SCALAR
    uint32_t bits;
    std::memcpy(&bits, data, sizeof(bits));
    const auto both = hn::Set(d32, bits);
#else
    const auto both = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(data));
#endif
    return {hn::BitCast(d, hn::ShiftLeft<16>(both)),
            hn::BitCast(d, hn::And(both, hn::Set(d32, 0xffff0000u)))};
  } else {
    const auto num_lanes = static_cast<int64_t>(hn::Lanes(d));
    return {LoadF32<kType>(d, data), LoadF32<kType>(d, data + num_lanes * kElementBytes<kType>)};
  }
}

// Where element i of consecutive elements lies in the vectors of their pairs.
template <DType kType>
HWY_INLINE int64_t IndexInPairs(int64_t i) {
  if constexpr (!kPairIsEvenOdd<kType>) return i;
  const auto num_lanes = static_cast<int64_t>(hn::Lanes(F32Tag()));
  const int64_t in_pair = i % (2 * num_lanes);
  return i - in_pair + in_pair % 2 * num_lanes + in_pair / 2;
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
