// How one step of weights is loaded and multiplied by one term of a step of activations. A kernel
// takes a unit as a template parameter. Compiled once per target.

#if defined(KVICK_OPS_LINEAR_UNITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_LINEAR_UNITS_INL_H_
#undef KVICK_OPS_LINEAR_UNITS_INL_H_
#else
#define KVICK_OPS_LINEAR_UNITS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "base/f32x16-inl.h"
#include "base/simd_load-inl.h"
#include "hwy/highway.h"
#include "ops/packed_activations.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

constexpr int64_t kVectorBytes = 64;  // sixteen lanes

HWY_INLINE F32Vector LoadLanes(const std::byte* vector, int64_t part) {
  return hn::Load(F32Tag(), reinterpret_cast<const float*>(vector) + part * kLanes);
}

HWY_INLINE void StoreLanes(F32Vector lanes, std::byte* vector, int64_t part) {
  hn::Store(lanes, F32Tag(), reinterpret_cast<float*>(vector) + part * kLanes);
}

// Operands and multiplication of units that compute in f32, one part of the lanes at a time.
struct MultiplyF32 {
  using Operand = F32Vector;
  static HWY_INLINE Operand LoadPanel(const std::byte* vector, int64_t part) {
    return LoadLanes(vector, part);
  }
  static HWY_INLINE void Add(Operand a, Operand b, F32Vector& sum) { sum = Fma(a, b, sum); }
};

// f32 or f16: one vector a step.
template <DType kType>
struct F32Unit : MultiplyF32 {
  static constexpr ActivationFormat kFormat = ActivationFormat::kF32;
  static constexpr int64_t kWeightBytes = 16 * kElementBytes<kType>;  // of a step of a row
  static constexpr int64_t kVectors = 1;  // of an unpacked step, in the order of the additions

  static HWY_INLINE Operand LoadWeights(const std::byte* w, int64_t, int64_t part) {
    return LoadF32<kType>(F32Tag(), w + part * kLanes * kElementBytes<kType>);
  }
  static HWY_INLINE Operand LoadActivations(const std::byte* x, int64_t, int64_t part) {
    return LoadLanes(x, part);
  }
};

// bf16 in f32: the odd elements of a step, then the even ones.
template <ActivationFormat kActivations>
struct PairUnit : MultiplyF32 {
  static constexpr ActivationFormat kFormat = kActivations;
  static constexpr int64_t kWeightBytes = 64;
  static constexpr int64_t kVectors = 2;

  static HWY_INLINE Operand LoadWeights(const std::byte* w, int64_t vector, int64_t part) {
    const F32Pair pair = LoadF32Pair<DType::kBF16>(F32Tag(), w, part);
    return vector == 0 ? pair.first : pair.second;
  }
  static HWY_INLINE Operand LoadActivations(const std::byte* x, int64_t vector, int64_t part) {
    if constexpr (kActivations == ActivationFormat::kF32Pairs) {
      return LoadLanes(x + vector * kVectorBytes, part);
    }
    return LoadWeights(x, vector, part);
  }
};

#if HWY_TARGET == HWY_AVX3

// bf16 by VDPBF16PS: of each of sixteen pairs the odd element is added first, then the even one,
// each rounded once; subnormals are flushed. A statement of the assembler, so that the compiler
// need not be told of AVX512_BF16 for the rest of the target.
struct DotUnit {
  static constexpr ActivationFormat kFormat = ActivationFormat::kBF16Pairs;
  static constexpr int64_t kWeightBytes = 64;
  static constexpr int64_t kVectors = 1;
  using Operand = hn::Vec<hn::ScalableTag<uint32_t>>;

  static HWY_INLINE Operand LoadWeights(const std::byte* w, int64_t, int64_t) {
    return hn::LoadU(hn::ScalableTag<uint32_t>(), reinterpret_cast<const uint32_t*>(w));
  }
  static HWY_INLINE Operand LoadActivations(const std::byte* x, int64_t, int64_t) {
    return LoadWeights(x, 0, 0);
  }
  static HWY_INLINE Operand LoadPanel(const std::byte* vector, int64_t) {
    return LoadWeights(vector, 0, 0);
  }
  static HWY_INLINE void Add(Operand a, Operand b, F32Vector& sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
};

#endif

// A step of weights as it lies in a panel: kVectors vectors.
template <class Unit>
HWY_INLINE void UnpackStep(const std::byte* w, std::byte* panel) {
  for (int64_t v = 0; v < Unit::kVectors; ++v) {
    for (int64_t p = 0; p < kParts; ++p) {
      const auto operand = Unit::LoadWeights(w, v, p);
      StoreLanes(hn::BitCast(F32Tag(), operand), panel + v * kVectorBytes, p);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
