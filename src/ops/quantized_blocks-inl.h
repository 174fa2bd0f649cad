// Quantized weights as integers, a block at a time, in plain loops: how every implementation reads
// them that has no unpacking of its own. Compiled once per target.
//
//   Codes    the integers of a block, in ascending columns
//   Scales   those of its sub-blocks, and the minimums where it has them; exact in f32

#if defined(KVICK_OPS_QUANTIZED_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_BLOCKS_INL_H_
#undef KVICK_OPS_QUANTIZED_BLOCKS_INL_H_
#else
#define KVICK_OPS_QUANTIZED_BLOCKS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/dtype.h"
#include "hwy/highway.h"
#include "ops/quantized_shape.h"
#include "quant/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

HWY_INLINE float HalfAt(const uint8_t* data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  return F16ToF32(bits);
}

HWY_INLINE uint32_t WordAt(const uint8_t* data) {
  uint32_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// Low nibbles, then high ones.
template <int kBytes>
HWY_INLINE void Nibbles(const uint8_t* packed, uint8_t* codes) {
  for (int i = 0; i < kBytes; ++i) codes[i] = packed[i] & 15;
  for (int i = 0; i < kBytes; ++i) codes[kBytes + i] = packed[i] >> 4;
}

// ---- Blocks of 32: an f16 scale, and an f16 minimum or none.

struct BlockQ8_0 {
  static constexpr QuantizedShape kShape = {.block_bytes = 34, .offset = 128};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    for (int i = 0; i < 32; ++i) codes[i] = block[2 + i] ^ 0x80;
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    scales[0] = HalfAt(block);
  }
};

struct BlockQ4_0 {
  static constexpr QuantizedShape kShape = {.block_bytes = 18, .offset = 8};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 2, codes);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    scales[0] = HalfAt(block);
  }
};

struct BlockQ4_1 {
  static constexpr QuantizedShape kShape = {.block_bytes = 20, .has_minimums = true};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 4, codes);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float* minimums) {
    scales[0] = HalfAt(block);
    minimums[0] = HalfAt(block + 2);
  }
};

// The fifth bits are those of one word.
HWY_INLINE void FifthBits(uint32_t bits, uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<uint8_t>((bits >> i & 1) << 4);
}

struct BlockQ5_0 {
  static constexpr QuantizedShape kShape = {.block_bytes = 22, .offset = 16};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 6, codes);
    FifthBits(WordAt(block + 2), codes);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    scales[0] = HalfAt(block);
  }
};

struct BlockQ5_1 {
  static constexpr QuantizedShape kShape = {.block_bytes = 24, .has_minimums = true};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 8, codes);
    FifthBits(WordAt(block + 4), codes);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float* minimums) {
    scales[0] = HalfAt(block);
    minimums[0] = HalfAt(block + 2);
  }
};

// Nibbles stand for values that are not evenly spaced: those of IQ4_NL and IQ4_XS, plus 128.
inline constexpr uint8_t kUnevenCodes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                             129, 141, 153, 166, 181, 197, 217, 241};

struct BlockIQ4_NL {
  static constexpr QuantizedShape kShape = {.block_bytes = 18, .offset = 128};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 2, codes);
    for (int i = 0; i < 32; ++i) codes[i] = kUnevenCodes[codes[i]];
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    scales[0] = HalfAt(block);
  }
};

// ---- Blocks of 256: an f16 scale times the integer scales of sub-blocks.

struct BlockIQ4_XS {
  static constexpr QuantizedShape kShape = {
      .block_columns = 256, .block_bytes = 136, .offset = 128};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    for (int sub = 0; sub < 8; ++sub) Nibbles<16>(block + 8 + 16 * sub, codes + 32 * sub);
    for (int i = 0; i < 256; ++i) codes[i] = kUnevenCodes[codes[i]];
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    const float d = HalfAt(block);
    const uint32_t high = block[2] | static_cast<uint32_t>(block[3]) << 8, low = WordAt(block + 4);
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t bits = (low >> 4 * i & 15) | (high >> 2 * i & 3) << 4;
      scales[i] = d * static_cast<float>(static_cast<int32_t>(bits) - 32);
    }
  }
};

// Of Q4_K and Q5_K: eight scales and eight minimums of 6 bits in 12 bytes.
struct SixBitScales {
  uint8_t scales[8], minimums[8];

  explicit HWY_INLINE SixBitScales(const uint8_t* packed) {
    const uint32_t a = WordAt(packed), b = WordAt(packed + 4), c = WordAt(packed + 8);
    const uint32_t words[4] = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030),
                               b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)};
    std::memcpy(scales, words, 8);
    std::memcpy(minimums, words + 2, 8);
  }

  HWY_INLINE void Store(const uint8_t* block, float* out, float* out_minimums) const {
    const float d = HalfAt(block), dmin = HalfAt(block + 2);
    for (int i = 0; i < 8; ++i) out[i] = d * static_cast<float>(scales[i]);
    for (int i = 0; i < 8; ++i) out_minimums[i] = -dmin * static_cast<float>(minimums[i]);
  }
};

struct BlockQ4_K {
  static constexpr QuantizedShape kShape = {
      .block_columns = 256, .block_bytes = 144, .has_minimums = true, .crosses_halves = true};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    for (int pair = 0; pair < 4; ++pair) Nibbles<32>(block + 16 + 32 * pair, codes + 64 * pair);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float* minimums) {
    SixBitScales(block + 4).Store(block, scales, minimums);
  }
};

struct BlockQ5_K {
  static constexpr QuantizedShape kShape = {
      .block_columns = 256, .block_bytes = 176, .has_minimums = true, .order = kEvenThenOdd};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    for (int pair = 0; pair < 4; ++pair) Nibbles<32>(block + 48 + 32 * pair, codes + 64 * pair);
    for (int sub = 0; sub < 8; ++sub) {
      for (int i = 0; i < 32; ++i) {
        codes[32 * sub + i] |= static_cast<uint8_t>((block[16 + i] >> sub & 1) << 4);
      }
    }
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float* minimums) {
    SixBitScales(block + 4).Store(block, scales, minimums);
  }
};

struct BlockQ6_K {
  static constexpr QuantizedShape kShape = {
      .block_columns = 256, .block_bytes = 210, .sub_columns = 16, .offset = 32};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    for (int half = 0; half < 2; ++half, codes += 128) {
      const uint8_t* high = block + 128 + 32 * half;
      Nibbles<64>(block + 64 * half, codes);
      for (int part = 0; part < 4; ++part) {
        for (int i = 0; i < 32; ++i) {
          codes[32 * part + i] |= static_cast<uint8_t>((high[i] >> 2 * part & 3) << 4);
        }
      }
    }
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    const float d = HalfAt(block + 208);
    for (int i = 0; i < 16; ++i) {
      scales[i] = d * static_cast<float>(static_cast<int8_t>(block[192 + i]));
    }
  }
};

// Four codes of 2 bits a byte: 32 columns of each position, for each half of a block.
HWY_INLINE void TwoBits(const uint8_t* packed, uint8_t* codes) {
  for (int half = 0; half < 2; ++half) {
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        codes[128 * half + 32 * part + i] = packed[32 * half + i] >> 2 * part & 3;
      }
    }
  }
}

struct BlockQ2_K {
  static constexpr QuantizedShape kShape = {.block_columns = 256,
                                            .block_bytes = 84,
                                            .sub_columns = 16,
                                            .has_minimums = true,
                                            .order = kPairsOfHalves};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) { TwoBits(block + 16, codes); }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float* minimums) {
    const float d = HalfAt(block + 80), dmin = HalfAt(block + 82);
    for (int i = 0; i < 16; ++i) scales[i] = d * static_cast<float>(block[i] & 15);
    for (int i = 0; i < 16; ++i) minimums[i] = -dmin * static_cast<float>(block[i] >> 4);
  }
};

struct BlockQ3_K {
  static constexpr QuantizedShape kShape = {.block_columns = 256,
                                            .block_bytes = 110,
                                            .sub_columns = 16,
                                            .offset = 4,
                                            .order = kPairsOfHalves};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    TwoBits(block + 32, codes);
    for (int part = 0; part < 8; ++part) {
      for (int i = 0; i < 32; ++i) {
        codes[32 * part + i] |= static_cast<uint8_t>((block[i] >> part & 1) << 2);
      }
    }
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    const float d = HalfAt(block + 108);
    const uint8_t* packed = block + 96;
    for (int i = 0; i < 16; ++i) {
      const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
      const int high = packed[8 + i % 4] >> 2 * (i / 4) & 3;
      scales[i] = d * static_cast<float>((low | high << 4) - 32);
    }
  }
};

// Calls body with the type's block. REQUIRES: quantized.
template <class Body>
HWY_INLINE void WithBlock(WeightType type, const Body& body) {
  switch (type) {
    case WeightType::kQ8_0:
      return body(BlockQ8_0());
    case WeightType::kQ4_0:
      return body(BlockQ4_0());
    case WeightType::kQ4_1:
      return body(BlockQ4_1());
    case WeightType::kQ5_0:
      return body(BlockQ5_0());
    case WeightType::kQ5_1:
      return body(BlockQ5_1());
    case WeightType::kQ2_K:
      return body(BlockQ2_K());
    case WeightType::kQ3_K:
      return body(BlockQ3_K());
    case WeightType::kQ4_K:
      return body(BlockQ4_K());
    case WeightType::kQ5_K:
      return body(BlockQ5_K());
    case WeightType::kQ6_K:
      return body(BlockQ6_K());
    case WeightType::kIQ4_NL:
      return body(BlockIQ4_NL());
    case WeightType::kIQ4_XS:
      return body(BlockIQ4_XS());
    default:
      KVICK_CHECK(false && "not quantized");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
