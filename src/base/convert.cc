// Rows of numbers from one type to another. Every target gives the same, correctly rounded bits, so
// the machine's best one is taken.

#include <cstring>

#include "base/dtype.h"
#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/convert.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/simd_load-inl.h"
#include "base/simd_store-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;
constexpr int64_t kLanes = hn::MaxLanes(F32Tag());

void StoreF16(F32Vector value, uint16_t* out) {
#if HWY_TARGET == HWY_SCALAR
  *out = F32ToF16(hn::GetLane(value));
#else
  const hn::Rebind<hwy::float16_t, F32Tag> d16;
  hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(out));
#endif
}

void ToBF16(const float* src, int64_t n, uint16_t* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreBF16(hn::LoadU(kTag, src + i), dst + i);
  for (; i < n; ++i) dst[i] = F32ToBF16(src[i]);
}

void ToF16(const float* src, int64_t n, uint16_t* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreF16(hn::LoadU(kTag, src + i), dst + i);
  for (; i < n; ++i) dst[i] = F32ToF16(src[i]);
}

// Returns how many were converted: all but those behind the last whole vector.
template <DType kType>
int64_t WholeVectorsToF32(const std::byte* src, int64_t n, float* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(LoadF32<kType>(kTag, src + 2 * i), kTag, dst + i);
  return i;
}

int64_t BF16VectorsToF32(const std::byte* src, int64_t n, float* dst) {
  return WholeVectorsToF32<DType::kBF16>(src, n, dst);
}
int64_t F16VectorsToF32(const std::byte* src, int64_t n, float* dst) {
  return WholeVectorsToF32<DType::kF16>(src, n, dst);
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {
namespace {

// Elements of a mapped file need not be aligned, not even to their own size.
uint16_t Load16(const std::byte* data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  return bits;
}

// A row of no elements may have no address, which memcpy must not be given.
void CopyFloats(const void* src, int64_t n, void* dst) {
  if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

void ConvertFromF32(DType dtype, const float* src, int64_t n, void* dst) {
  static const auto to_bf16 = KVICK_FOR_ISA(BestIsa(), ToBF16);
  static const auto to_f16 = KVICK_FOR_ISA(BestIsa(), ToF16);
  if (dtype == DType::kF32) {
    CopyFloats(src, n, dst);
    return;
  }
  (dtype == DType::kBF16 ? to_bf16 : to_f16)(src, n, static_cast<uint16_t*>(dst));
}

void ConvertToF32(DType dtype, const void* src, int64_t n, float* dst) {
  static const auto bf16_vectors = KVICK_FOR_ISA(BestIsa(), BF16VectorsToF32);
  static const auto f16_vectors = KVICK_FOR_ISA(BestIsa(), F16VectorsToF32);
  const auto* bytes = static_cast<const std::byte*>(src);
  switch (dtype) {
    case DType::kF32:
      CopyFloats(src, n, dst);
      return;
    case DType::kF16:
      for (int64_t i = f16_vectors(bytes, n, dst); i < n; ++i)
        dst[i] = F16ToF32(Load16(bytes + 2 * i));
      return;
    case DType::kBF16:
      for (int64_t i = bf16_vectors(bytes, n, dst); i < n; ++i)
        dst[i] = BF16ToF32(Load16(bytes + 2 * i));
      return;
  }
}

}  // namespace kvick
#endif  // HWY_ONCE
