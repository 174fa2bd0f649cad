// Quantized weights as integers, a block at a time: how every implementation reads them that has no
// unpacking of its own. Compiled once per target.
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
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/dtype.h"
#include "hwy/highway.h"
#include "ops/quantized_shape.h"
#include "quant/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float HalfAt(const uint8_t* data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
#if HWY_TARGET == HWY_SCALAR
  return F16ToF32(bits);
#else
  const hn::CappedTag<float, 1> d32;
  const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
  return hn::GetLane(
      hn::PromoteTo(d32, hn::BitCast(d16, hn::Set(hn::RebindToUnsigned<decltype(d16)>(), bits))));
#endif
}

HWY_INLINE uint32_t WordAt(const uint8_t* data) {
  uint32_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// Calls body(d, i) for each vector of bytes, at i, of kNum: a power of two.
template <int kNum, class Body>
HWY_INLINE void ForBytes(const Body& body) {
  const hn::CappedTag<uint8_t, kNum> d;
  for (size_t i = 0; i < kNum; i += hn::Lanes(d)) body(d, i);
}

// Calls body with the constants 0 to kNum - 1.
template <int kNum, class Body>
HWY_INLINE void ForParts(const Body& body) {
  [&]<int... kPart>(std::integer_sequence<int, kPart...>) HWY_ATTR {
    (body(std::integral_constant<int, kPart>()), ...);
  }
  (std::make_integer_sequence<int, kNum>());
}

// The bits of kMask, after they were moved from bit kFrom of each byte to bit kTo.
template <int kFrom, int kTo, int kMask, class D>
HWY_INLINE hn::Vec<D> MoveBits(D d, hn::Vec<D> bytes) {
  const auto bits = hn::And(bytes, hn::Set(d, static_cast<uint8_t>(kMask << kFrom)));
  if constexpr (kTo > kFrom) return hn::ShiftLeft<kTo - kFrom>(bits);
  if constexpr (kTo < kFrom) return hn::ShiftRight<kFrom - kTo>(bits);
  return bits;
}

// scales[i] = factor * ints[i], exact. Int: int8_t or uint8_t.
template <int kNum, class Int>
HWY_INLINE void Scale(float factor, const Int* ints, float* scales) {
  const hn::CappedTag<float, kNum> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<Int, decltype(d)> d8;
  for (size_t i = 0; i < kNum; i += hn::Lanes(d)) {
    const auto values = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, ints + i)));
    hn::StoreU(hn::Mul(hn::Set(d, factor), values), d, scales + i);
  }
}

// Low nibbles, then high ones.
template <int kBytes>
HWY_INLINE void Nibbles(const uint8_t* packed, uint8_t* codes) {
  ForBytes<kBytes>([=](auto d, size_t i) HWY_ATTR {
    const auto bytes = hn::LoadU(d, packed + i);
    hn::StoreU(hn::And(bytes, hn::Set(d, 15)), d, codes + i);
    hn::StoreU(hn::ShiftRight<4>(bytes), d, codes + kBytes + i);
  });
}

// Adds the bits of kMask, moved from bit kFrom of `bits` to bit kTo.
template <int kFrom, int kTo, int kMask>
HWY_INLINE void AddBits(const uint8_t* bits, uint8_t* codes) {
  ForBytes<32>([=](auto d, size_t i) HWY_ATTR {
    const auto more = MoveBits<kFrom, kTo, kMask>(d, hn::LoadU(d, bits + i));
    hn::StoreU(hn::Or(hn::LoadU(d, codes + i), more), d, codes + i);
  });
}

// ---- Blocks of 32: an f16 scale, and an f16 minimum or none.

struct BlockQ8_0 {
  static constexpr QuantizedShape kShape = {.block_bytes = 34, .offset = 128};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    ForBytes<32>([=](auto d, size_t i) HWY_ATTR {
      hn::StoreU(hn::Xor(hn::LoadU(d, block + 2 + i), hn::Set(d, 0x80)), d, codes + i);
    });
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

// The fifth bits are those of one word. Sixteen codes at a time, as Nibbles<16> stored them: a
// processor forwards a store to a load that is not larger.
HWY_INLINE void FifthBits(uint32_t bits, uint8_t* codes) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<uint8_t>((bits >> i & 1) << 4);
#else
  alignas(16) static constexpr uint8_t kByteOf[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                                                      1, 1, 1, 1, 1, 1, 1, 1};
  for (int half = 0; half < 2; ++half, bits >>= 16, codes += 16) {
    ForBytes<16>([=](auto d, size_t i) HWY_ATTR {
      const hn::Repartition<uint32_t, decltype(d)> d32;
      const hn::Repartition<uint64_t, decltype(d)> d64;
      const auto copies = hn::BitCast(d, hn::Set(d32, bits));
      const auto bytes = hn::TableLookupBytes(copies, hn::Load(d, kByteOf + i));
      const auto bit_of = hn::BitCast(d, hn::Set(d64, 0x8040201008040201));
      const auto fifth = hn::IfThenElseZero(hn::TestBit(bytes, bit_of), hn::Set(d, 16));
      hn::StoreU(hn::Or(hn::LoadU(d, codes + i), fifth), d, codes + i);
    });
  }
#endif
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

template <int kNum>
HWY_INLINE void LookUpCodes(uint8_t* codes) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < kNum; ++i) codes[i] = kUnevenCodes[codes[i]];
#else
  for (int first = 0; first < kNum; first += 16, codes += 16) {  // as Nibbles<16> stored them
    ForBytes<16>([=](auto d, size_t i) HWY_ATTR {
      const auto table = hn::LoadDup128(d, kUnevenCodes);
      hn::StoreU(hn::TableLookupBytes(table, hn::LoadU(d, codes + i)), d, codes + i);
    });
  }
#endif
}

struct BlockIQ4_NL {
  static constexpr QuantizedShape kShape = {.block_bytes = 18, .offset = 128};
  static HWY_INLINE void Codes(const uint8_t* block, uint8_t* codes) {
    Nibbles<16>(block + 2, codes);
    LookUpCodes<32>(codes);
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
    LookUpCodes<256>(codes);
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    int8_t ints[8];
    const uint32_t high = block[2] | static_cast<uint32_t>(block[3]) << 8, low = WordAt(block + 4);
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t bits = (low >> 4 * i & 15) | (high >> 2 * i & 3) << 4;
      ints[i] = static_cast<int8_t>(static_cast<int32_t>(bits) - 32);
    }
    Scale<8>(HalfAt(block), ints, scales);
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
    Scale<8>(HalfAt(block), scales, out);
    Scale<8>(-HalfAt(block + 2), minimums, out_minimums);
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
    ForParts<8>([=](auto sub) HWY_ATTR { AddBits<sub, 4, 1>(block + 16, codes + 32 * sub); });
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
      ForParts<4>([=](auto part) HWY_ATTR { AddBits<2 * part, 4, 3>(high, codes + 32 * part); });
    }
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    Scale<16>(HalfAt(block + 208), reinterpret_cast<const int8_t*>(block + 192), scales);
  }
};

// Four codes of 2 bits a byte: 32 columns of each position, for each half of a block.
HWY_INLINE void TwoBits(const uint8_t* packed, uint8_t* codes) {
  for (int half = 0; half < 2; ++half, packed += 32, codes += 128) {
    ForParts<4>([=](auto part) HWY_ATTR {
      ForBytes<32>([=](auto d, size_t i) HWY_ATTR {
        const auto bits = MoveBits<2 * part, 0, 3>(d, hn::LoadU(d, packed + i));
        hn::StoreU(bits, d, codes + 32 * part + i);
      });
    });
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
    uint8_t both[32];
    Nibbles<16>(block, both);
    Scale<16>(HalfAt(block + 80), both, scales);
    Scale<16>(-HalfAt(block + 82), both + 16, minimums);
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
    ForParts<8>([=](auto part) HWY_ATTR { AddBits<part, 2, 1>(block, codes + 32 * part); });
  }
  static HWY_INLINE void Scales(const uint8_t* block, float* scales, float*) {
    const uint32_t a = WordAt(block + 96), b = WordAt(block + 100), c = WordAt(block + 104);
    // Four at a time, less 32: below 128 with the highest bit set, nothing is borrowed.
    const auto join = [](uint32_t low, uint32_t high) {
      const uint32_t codes = (low & 0x0f0f0f0f) | (high & 0x03030303) << 4;
      return ((codes | 0x80808080) - 0x20202020) ^ 0x80808080;
    };
    const uint32_t words[4] = {join(a, c), join(b, c >> 2), join(a >> 4, c >> 4),
                               join(b >> 4, c >> 6)};
    int8_t ints[16];
    std::memcpy(ints, words, sizeof(ints));
    Scale<16>(HalfAt(block + 108), ints, scales);
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
