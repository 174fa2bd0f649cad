#ifndef KVICK_QUANT_BLOCK_BYTES_H_
#define KVICK_QUANT_BLOCK_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace kvick {

// Fields of a block, which are little-endian and may have any alignment.
inline uint8_t Byte(const std::byte* data, int64_t i) { return static_cast<uint8_t>(data[i]); }

inline uint16_t LoadU16(const std::byte* data) {
  return static_cast<uint16_t>(Byte(data, 0) | Byte(data, 1) << 8);
}

inline uint32_t LoadU32(const std::byte* data) {
  return LoadU16(data) | static_cast<uint32_t>(LoadU16(data + 2)) << 16;
}

inline float LoadF16(const std::byte* data) { return F16ToF32(LoadU16(data)); }

inline void StoreU16(uint16_t value, std::byte* data) {
  data[0] = static_cast<std::byte>(value);
  data[1] = static_cast<std::byte>(value >> 8);
}

inline void StoreU32(uint32_t value, std::byte* data) {
  StoreU16(static_cast<uint16_t>(value), data);
  StoreU16(static_cast<uint16_t>(value >> 16), data + 2);
}

// Stores `value` and returns what was stored.
inline float StoreF16(float value, std::byte* data) {
  StoreU16(F32ToF16(value), data);
  return LoadF16(data);
}

// The low and the high half of byte i.
inline int LowNibble(const std::byte* data, int64_t i) { return Byte(data, i) & 15; }
inline int HighNibble(const std::byte* data, int64_t i) { return Byte(data, i) >> 4; }

}  // namespace kvick

#endif  // KVICK_QUANT_BLOCK_BYTES_H_
