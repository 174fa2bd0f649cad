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
#include "base/f32x16-inl.h"
#include "hwy/highway.h"
#include "kvick/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

// Consecutive elements are read in pairs of sixteen lanes: 32 at once. Of bf16, lane i of a pair
// holds elements 2i + 1 (first) and 2i (second), which lie in one 32-bit word and are parted by one
// mask and one shift. Of other types it holds elements i and 16 + i.
inline constexpr int64_t kPairElements = 32;

// One part of the lanes of a pair.
struct F32Pair {
  F32Vector first, second;
};

template <DType kType>
inline constexpr bool kPairIsOddEven = kType == DType::kBF16;

// `data` is that of the first element of the pair.
template <DType kType>
HWY_INLINE F32Pair LoadF32Pair(F32Tag d, const std::byte* data, int64_t part) {
  if constexpr (kPairIsOddEven<kType>) {
    const hn::RebindToUnsigned<F32Tag> d32;
    data += part * kLanes * int64_t{sizeof(uint32_t)};
#if HWY_TARGET == HWY_SCALAR
    uint32_t bits;
    std::memcpy(&bits, data, sizeof(bits));
    const auto both = hn::Set(d32, bits);
#else
    const auto both = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(data));
#endif
    return {hn::BitCast(d, hn::And(both, hn::Set(d32, 0xffff0000u))),
            hn::BitCast(d, hn::ShiftLeft<16>(both))};
  } else {
    data += part * kLanes * kElementBytes<kType>;
    return {LoadF32<kType>(d, data), LoadF32<kType>(d, data + 16 * kElementBytes<kType>)};
  }
}

// Where element i of consecutive elements stands in the order of pairs: 16 first, 16 second, and so
// on.
template <DType kType>
constexpr int64_t IndexInPairs(int64_t i) {
  if constexpr (!kPairIsOddEven<kType>) return i;
  const int64_t in_pair = i % kPairElements;
  return i - in_pair + (1 - in_pair % 2) * 16 + in_pair / 2;
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
