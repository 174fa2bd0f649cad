#ifndef KVICK_MODEL_ARCH_SPEC_RANGES_H_
#define KVICK_MODEL_ARCH_SPEC_RANGES_H_

#include "formats/range.h"

namespace kvick {

// Far above every model, and low enough that 2 * layers * kv_heads * head_dim * positions * 4 bytes
// fit 63 bits.
inline constexpr IntRange kLayersRange{1, 1024};
inline constexpr IntRange kWidthRange{1, 1 << 20};
inline constexpr IntRange kHeadsRange{1, 4096};
inline constexpr IntRange kHeadDimRange{2, 256};
inline constexpr IntRange kVocabRange{1, 1 << 24};
inline constexpr IntRange kPositionsRange{1, 1 << 28};

// Frequencies stay at most 1000 radians a token, so that no angle overflows.
inline constexpr FloatRange kThetaRange{1.0, 1e15};
inline constexpr FloatRange kFactorRange{1e-3, 1e6};
inline constexpr FloatRange kEpsRange{1e-15, 1.0};
// Multipliers and soft caps.
inline constexpr FloatRange kScaleRange{1e-6, 1e6};

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_SPEC_RANGES_H_
