#ifndef KVICK_QUANT_SIX_BIT_SCALES_H_
#define KVICK_QUANT_SIX_BIT_SCALES_H_

#include <cstddef>

#include "quant/block_bytes.h"

namespace kvick {

// The eight scales and eight minimums, of 6 bits each, of a block of Q4_K or Q5_K, in 12 bytes.
// For j in [0, 4):
//
//   scale j        bits 0 to 5 of byte j
//   minimum j      bits 0 to 5 of byte 4 + j
//   scale 4 + j    the low half of byte 8 + j, above it bits 6 and 7 of byte j
//   minimum 4 + j  the high half of byte 8 + j, above it bits 6 and 7 of byte 4 + j
struct ScaleAndMinimum {
  int scale, minimum;
};

inline ScaleAndMinimum LoadSixBits(const std::byte* bytes, int j) {
  if (j < 4) return {Byte(bytes, j) & 63, Byte(bytes, 4 + j) & 63};
  return {LowNibble(bytes, 4 + j) | Byte(bytes, j - 4) >> 6 << 4,
          HighNibble(bytes, 4 + j) | Byte(bytes, j) >> 6 << 4};
}

// REQUIRES: the bytes are 0 where nothing was stored yet.
inline void StoreSixBits(ScaleAndMinimum value, int j, std::byte* bytes) {
  if (j < 4) {
    bytes[j] |= static_cast<std::byte>(value.scale);
    bytes[4 + j] |= static_cast<std::byte>(value.minimum);
    return;
  }
  bytes[4 + j] |= static_cast<std::byte>((value.scale & 15) | (value.minimum & 15) << 4);
  bytes[j - 4] |= static_cast<std::byte>(value.scale >> 4 << 6);
  bytes[j] |= static_cast<std::byte>(value.minimum >> 4 << 6);
}

}  // namespace kvick

#endif  // KVICK_QUANT_SIX_BIT_SCALES_H_
