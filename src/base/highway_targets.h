#ifndef KVICK_BASE_HIGHWAY_TARGETS_H_
#define KVICK_BASE_HIGHWAY_TARGETS_H_

// Included before hwy/foreach_target.h by a source whose bodies are compiled once for each vector
// implementation of base/isa.h: in namespace kvick::N_AVX3, N_AVX2 and N_SCALAR, or on Arm N_NEON
// and N_SCALAR. Which one runs is for the caller's Isa to say, so Highway's own dispatch is not
// used.

#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_BROKEN_EMU128 1  // so that the portable target is HWY_SCALAR with every compiler
// NEON is in every aarch64 processor. Without this, Highway has GCC compile it for a processor with
// AES too, by a pragma that GCC does not apply to the implicit functions of a struct of vectors:
// calls from there are errors.
#define TOOLCHAIN_MISS_SYS_AUXV_H

#include "base/isa.h"

namespace kvick {

// The vector implementation that serves `isa`, the widest first: AVX-512 also beside matrix tiles
// and the dot product of bf16.
template <class Function>
Function* SelectForIsa(Isa isa, Function* avx512, Function* avx2, Function* scalar) {
  switch (isa) {
    case Isa::kAmx:
    case Isa::kAmxEmulated:
    case Isa::kAvx512Bf16:
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx2:
      return avx2;
    case Isa::kNeon:
    case Isa::kScalar:
      break;
  }
  return scalar;
}

template <class Function>
Function* SelectForIsa(Isa isa, Function* neon, Function* scalar) {
  return isa == Isa::kNeon ? neon : scalar;
}

}  // namespace kvick

// The function of that name compiled for `isa`. Use under #if HWY_ONCE, inside namespace kvick.
#if defined(__x86_64__)
#define KVICK_FOR_ISA(isa, function) \
  ::kvick::SelectForIsa(isa, &N_AVX3::function, &N_AVX2::function, &N_SCALAR::function)
#elif defined(__aarch64__)
#define KVICK_FOR_ISA(isa, function) \
  ::kvick::SelectForIsa(isa, &N_NEON::function, &N_SCALAR::function)
#else
#define KVICK_FOR_ISA(isa, function) (&N_SCALAR::function)
#endif

#endif  // KVICK_BASE_HIGHWAY_TARGETS_H_
