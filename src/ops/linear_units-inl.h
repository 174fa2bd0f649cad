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

constexpr int64_t kVectorBytes = 16 * int64_t{sizeof(float)};  // sixteen lanes

// acc + a * b, lane by lane, of one part of sixteen lanes of f32.
struct MultiplyF32 {
  using Operand = F32Vector;
  static HWY_INLINE Operand Load(const std::byte* vector, int64_t part) {
    return hn::Load(F32Tag(), reinterpret_cast<const float*>(vector) + part * kLanes);
  }
  static HWY_INLINE void Add(Operand a, Operand b, F32Vector& acc) { acc = Fma(a, b, acc); }
};

// f32 or f16: one vector a step.
template <DType kType>
struct F32Unit {
  static constexpr ActivationFormat kFormat = ActivationFormat::kF32;
  static constexpr int64_t kWeightBytes = 16 * kElementBytes<kType>;  // of a step of a row
  static constexpr int64_t kVectors = 1;                              // of an unpacked step
  using Multiply = MultiplyF32;

  struct Weights {
    F32Vector part[kParts];
  };
  static HWY_INLINE Weights Load(const std::byte* w) {
    Weights weights;
    for (int64_t p = 0; p < kParts; ++p) {
      weights.part[p] = LoadF32<kType>(F32Tag(), w + p * kLanes * kElementBytes<kType>);
    }
    return weights;
  }
  static HWY_INLINE void Add(const Weights& w, const std::byte* x, F32x16& sum) {
    for (int64_t p = 0; p < kParts; ++p) {
      Multiply::Add(w.part[p], Multiply::Load(x, p), sum.part[p]);
    }
  }
  static HWY_INLINE void Unpack(const std::byte* w, std::byte* panel) {
    const Weights weights = Load(w);
    for (int64_t p = 0; p < kParts; ++p) {
      hn::Store(weights.part[p], F32Tag(), reinterpret_cast<float*>(panel) + p * kLanes);
    }
  }
};

// bf16 in f32: the odd elements of a step, then the even ones.
struct PairUnit {
  static constexpr ActivationFormat kFormat = ActivationFormat::kF32Pairs;
  static constexpr int64_t kWeightBytes = 64;
  static constexpr int64_t kVectors = 2;
  using Multiply = MultiplyF32;

  struct Weights {
    F32Pair part[kParts];
  };
  static HWY_INLINE Weights Load(const std::byte* w) {
    Weights weights;
    for (int64_t p = 0; p < kParts; ++p) {
      weights.part[p] = LoadF32Pair<DType::kBF16>(F32Tag(), w, p);
    }
    return weights;
  }
  static HWY_INLINE void Add(const Weights& w, const std::byte* x, F32x16& sum) {
    for (int64_t p = 0; p < kParts; ++p) {
      Multiply::Add(w.part[p].first, Multiply::Load(x, p), sum.part[p]);
      Multiply::Add(w.part[p].second, Multiply::Load(x + kVectorBytes, p), sum.part[p]);
    }
  }
  static HWY_INLINE void Unpack(const std::byte* w, std::byte* panel) {
    const Weights weights = Load(w);
    auto* out = reinterpret_cast<float*>(panel);
    for (int64_t p = 0; p < kParts; ++p) {
      hn::Store(weights.part[p].first, F32Tag(), out + p * kLanes);
      hn::Store(weights.part[p].second, F32Tag(), out + 16 + p * kLanes);
    }
  }
};

#if HWY_TARGET == HWY_AVX3

// Sixteen pairs of bf16, by the instruction: the odd element of a pair is added first, then the
// even one, each rounded once; subnormals are flushed. A statement of the assembler, so that the
// compiler need not be told of AVX512_BF16 for the rest of the target.
struct MultiplyBF16 {
  using Operand = hn::Vec<hn::ScalableTag<uint32_t>>;
  static HWY_INLINE Operand Load(const std::byte* vector, int64_t) {
    return hn::LoadU(hn::ScalableTag<uint32_t>(), reinterpret_cast<const uint32_t*>(vector));
  }
  static HWY_INLINE void Add(Operand a, Operand b, F32Vector& acc) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(acc.raw) : "v"(a.raw), "v"(b.raw));
  }
};

// bf16 by the dot product of the processor.
struct DotUnit {
  static constexpr ActivationFormat kFormat = ActivationFormat::kBF16Pairs;
  static constexpr int64_t kWeightBytes = 64;
  static constexpr int64_t kVectors = 1;
  using Multiply = MultiplyBF16;

  using Weights = Multiply::Operand;
  static HWY_INLINE Weights Load(const std::byte* w) { return Multiply::Load(w, 0); }
  static HWY_INLINE void Add(const Weights& w, const std::byte* x, F32x16& sum) {
    Multiply::Add(w, Multiply::Load(x, 0), sum.part[0]);
  }
  static HWY_INLINE void Unpack(const std::byte* w, std::byte* panel) {
    const hn::ScalableTag<uint32_t> d32;
    hn::Store(Load(w), d32, reinterpret_cast<uint32_t*>(panel));
  }
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
