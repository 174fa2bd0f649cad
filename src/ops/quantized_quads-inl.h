// Quantized weights in the registers of AVX-512, a step at a time, as VPDPBUSD takes them.
//
// A quad is four sub-blocks, in the order of the shape. Each 128 bits of a vector hold sixteen
// columns of one of them; where sub-blocks have 32 columns, the second vector holds the other
// sixteen.

#if defined(KVICK_OPS_QUANTIZED_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_QUADS_INL_H_
#undef KVICK_OPS_QUANTIZED_QUADS_INL_H_
#else
#define KVICK_OPS_QUANTIZED_QUADS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

template <class Block>
struct Quads {
  static constexpr int kVectors = Block::kShape.sub_columns / 16;  // of a quad

  __m512i codes[4][kVectors];
  __m512 scales, minimums;  // of the sub-blocks in ascending order

  explicit Quads(const uint8_t* step);
};

HWY_INLINE __m512i Load512(const uint8_t* data) { return _mm512_loadu_si512(data); }

HWY_INLINE __m128i Load128(const uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

HWY_INLINE __m512i Twice256(const uint8_t* data) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data)));
}

// Sixteen bytes at each of four places.
HWY_INLINE __m512i Load4x128(const uint8_t* data, int64_t stride) {
  __m512i v = _mm512_castsi128_si512(Load128(data));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, Load128(data + stride));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, Load128(data + 2 * stride));
  return _mm512_mask_broadcast_i32x4(v, 0xf000, Load128(data + 3 * stride));
}

HWY_INLINE __m512i LowNibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
HWY_INLINE __m512i HighNibbles(__m512i v) { return LowNibbles(_mm512_srli_epi16(v, 4)); }

// a | (b & bits)
HWY_INLINE __m512i OrBits(__m512i a, __m512i b, int bits) {
  constexpr int kAOrBAndC = 0xf8;
  return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(static_cast<char>(bits)), kAOrBAndC);
}

// 16-bit shifts that differ between the halves, or the quarters, of a vector.
HWY_INLINE __m512i ByHalves(int first, int second) {
  const auto shift = [](int by) { return by | by << 16; };
  return _mm512_inserti64x4(_mm512_set1_epi32(shift(first)), _mm256_set1_epi32(shift(second)), 1);
}

HWY_INLINE __m512 HalvesToF32(__m512i low_words) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(low_words));
}

HWY_INLINE __m512 BroadcastHalf(const uint8_t* data) {
  return _mm512_broadcastss_ps(
      _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(WordAt(data - 2) >> 16))));
}

HWY_INLINE __m512 BytesToF32(__m128i unsigned_bytes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(unsigned_bytes));
}

// The step as VPDPBUSD takes it: vector v has columns 4v to 4v + 3 of all sixteen sub-blocks, so
// that the sums of sub-blocks come out without adding lanes. Lanes are in the order of LanesOf.
template <class Block>
struct Lanes {
  static constexpr int kVectors = Block::kShape.sub_columns / 4;

  __m512i codes[kVectors];
  __m512 scales, minimums;

  Lanes() = default;
  explicit HWY_INLINE Lanes(const uint8_t* step) {
    const Quads<Block> quads(step);
    for (int i = 0; i < Quads<Block>::kVectors; ++i) {
      const __m512i a = quads.codes[0][i], b = quads.codes[1][i];
      const __m512i c = quads.codes[2][i], d = quads.codes[3][i];
      const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
      const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
      codes[4 * i] = _mm512_unpacklo_epi64(ab_low, cd_low);
      codes[4 * i + 1] = _mm512_unpackhi_epi64(ab_low, cd_low);
      codes[4 * i + 2] = _mm512_unpacklo_epi64(ab_high, cd_high);
      codes[4 * i + 3] = _mm512_unpackhi_epi64(ab_high, cd_high);
    }
    static constexpr LaneOrder kLanes = Block::kShape.lanes();
    const __m512i order = _mm512_cvtepu8_epi32(Load128(kLanes.data()));
    scales = _mm512_permutexvar_ps(order, quads.scales);
    if constexpr (Block::kShape.has_minimums) {
      minimums = _mm512_permutexvar_ps(order, quads.minimums);
    }
  }

  HWY_INLINE void StoreTo(std::byte* data) const {
    for (int i = 0; i < kVectors; ++i) _mm512_store_si512(data + i * 64, codes[i]);
    _mm512_store_ps(data + kVectors * 64, scales);
    if constexpr (Block::kShape.has_minimums) {
      _mm512_store_ps(data + kVectors * 64 + 64, minimums);
    }
  }

  static HWY_INLINE Lanes LoadFrom(const std::byte* data) {
    Lanes lanes;
    for (int i = 0; i < kVectors; ++i) lanes.codes[i] = _mm512_load_si512(data + i * 64);
    lanes.scales = _mm512_load_ps(data + kVectors * 64);
    if constexpr (Block::kShape.has_minimums) {
      lanes.minimums = _mm512_load_ps(data + kVectors * 64 + 64);
    }
    return lanes;
  }
};

// ---- Blocks of 32, sixteen of them.

// The first four bytes of each.
template <class Block>
HWY_INLINE __m512i FirstWords(const uint8_t* step) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const int stride = static_cast<int>(Block::kShape.block_bytes);
  return _mm512_i32gather_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(stride)), step, 1);
}

template <class Block>
HWY_INLINE void LoadScales(const uint8_t* step, Quads<Block>& quads) {
  const __m512i words = FirstWords<Block>(step);
  quads.scales = HalvesToF32(words);
  if constexpr (Block::kShape.has_minimums) {
    quads.minimums = HalvesToF32(_mm512_srli_epi32(words, 16));
  }
}

template <class Block>
HWY_INLINE void LoadNibbles(const uint8_t* step, int64_t offset, Quads<Block>& quads) {
  constexpr int64_t kStride = Block::kShape.block_bytes;
  for (int64_t q = 0; q < 4; ++q) {
    const __m512i packed = Load4x128(step + 4 * q * kStride + offset, kStride);
    quads.codes[q][0] = LowNibbles(packed);
    quads.codes[q][1] = HighNibbles(packed);
  }
}

template <class Block>
HWY_INLINE void AddFifthBits(const uint8_t* step, int64_t offset, Quads<Block>& quads) {
  constexpr int64_t kStride = Block::kShape.block_bytes;
  const __m512i bit = _mm512_set1_epi8(16);
  for (int64_t q = 0; q < 4; ++q) {
    uint64_t first = 0, second = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const uint64_t word = WordAt(step + (4 * q + i) * kStride + offset);
      first |= (word & 0xffff) << 16 * i;
      second |= (word >> 16) << 16 * i;
    }
    quads.codes[q][0] = _mm512_mask_add_epi8(quads.codes[q][0], first, quads.codes[q][0], bit);
    quads.codes[q][1] = _mm512_mask_add_epi8(quads.codes[q][1], second, quads.codes[q][1], bit);
  }
}

template <class Block>
HWY_INLINE void LookUpCodes(Quads<Block>& quads) {
  const __m512i table = _mm512_broadcast_i32x4(Load128(kUnevenCodes));
  for (auto& quad : quads.codes) {
    for (__m512i& codes : quad) codes = _mm512_shuffle_epi8(table, codes);
  }
}

template <>
HWY_INLINE Quads<BlockQ8_0>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  constexpr int64_t kStride = 34;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (int64_t q = 0; q < 4; ++q) {
    const uint8_t* first = step + 4 * q * kStride + 2;
    codes[q][0] = _mm512_xor_si512(Load4x128(first, kStride), sign);
    codes[q][1] = _mm512_xor_si512(Load4x128(first + 16, kStride), sign);
  }
}

template <>
HWY_INLINE Quads<BlockQ4_0>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  LoadNibbles(step, 2, *this);
}

template <>
HWY_INLINE Quads<BlockQ4_1>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  LoadNibbles(step, 4, *this);
}

template <>
HWY_INLINE Quads<BlockQ5_0>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  LoadNibbles(step, 6, *this);
  AddFifthBits(step, 2, *this);
}

template <>
HWY_INLINE Quads<BlockQ5_1>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  LoadNibbles(step, 8, *this);
  AddFifthBits(step, 4, *this);
}

template <>
HWY_INLINE Quads<BlockIQ4_NL>::Quads(const uint8_t* step) {
  LoadScales(step, *this);
  LoadNibbles(step, 2, *this);
  LookUpCodes(*this);
}

// ---- Blocks of 256 with sub-blocks of 32, two of them.

// Eight lanes of each block's value.
HWY_INLINE __m512i OfBlocks(uint32_t first, uint32_t second) {
  return _mm512_inserti64x4(_mm512_set1_epi32(static_cast<int>(first)),
                            _mm256_set1_epi32(static_cast<int>(second)), 1);
}

template <class Block>
HWY_INLINE void LoadSixBitScales(const uint8_t* step, Quads<Block>& quads) {
  const uint8_t* next = step + Block::kShape.block_bytes;
  const SixBitScales first(step + 4), second(next + 4);
  const auto both = [](const uint8_t* a, const uint8_t* b) {
    return BytesToF32(_mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)),
                                         _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b))));
  };
  const __m512i halves = OfBlocks(WordAt(step), WordAt(next));
  const __m512 minus_dmin =
      _mm512_sub_ps(_mm512_set1_ps(-0.0f), HalvesToF32(_mm512_srli_epi32(halves, 16)));
  quads.scales = _mm512_mul_ps(HalvesToF32(halves), both(first.scales, second.scales));
  quads.minimums = _mm512_mul_ps(minus_dmin, both(first.minimums, second.minimums));
}

// The first and the second sixteen bytes of each of the four pairs of sub-blocks.
struct PairBytes {
  __m512i half[2];

  explicit HWY_INLINE PairBytes(const uint8_t* packed) {
    const __m512i a = Load512(packed), b = Load512(packed + 64);
    half[0] = _mm512_shuffle_i64x2(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    half[1] = _mm512_shuffle_i64x2(a, b, _MM_SHUFFLE(3, 1, 3, 1));
  }
};

template <>
HWY_INLINE Quads<BlockQ4_K>::Quads(const uint8_t* step) {
  LoadSixBitScales(step, *this);
  for (int64_t block = 0; block < 2; ++block, step += BlockQ4_K::kShape.block_bytes) {
    const PairBytes packed(step + 16);
    for (int64_t i = 0; i < 2; ++i) {
      codes[2 * block][i] = LowNibbles(packed.half[i]);
      codes[2 * block + 1][i] = HighNibbles(packed.half[i]);
    }
  }
}

template <>
HWY_INLINE Quads<BlockQ5_K>::Quads(const uint8_t* step) {
  LoadSixBitScales(step, *this);
  const __m512i shifts = _mm512_inserti64x4(
      _mm512_castsi256_si512(_mm256_setr_epi64x(0, 0, 0x0002000200020002, 0x0002000200020002)),
      _mm256_setr_epi64x(0x0004000400040004, 0x0004000400040004, 0x0006000600060006,
                         0x0006000600060006),
      1);
  for (int64_t block = 0; block < 2; ++block, step += BlockQ5_K::kShape.block_bytes) {
    const PairBytes packed(step + 48);
    for (int64_t i = 0; i < 2; ++i) {
      const __m512i bits = _mm512_broadcast_i32x4(Load128(step + 16 + 16 * i));
      const __m512i pairs = _mm512_srlv_epi16(bits, shifts);  // of each pair of sub-blocks
      codes[2 * block][i] = OrBits(LowNibbles(packed.half[i]), _mm512_slli_epi16(pairs, 4), 16);
      codes[2 * block + 1][i] =
          OrBits(HighNibbles(packed.half[i]), _mm512_slli_epi16(pairs, 3), 16);
    }
  }
}

template <>
HWY_INLINE Quads<BlockIQ4_XS>::Quads(const uint8_t* step) {
  constexpr int64_t kStride = BlockIQ4_XS::kShape.block_bytes;
  const auto lanes_times = [](int by) {
    return _mm512_mullo_epi32(_mm512_set1_epi32(by),
                              _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0));
  };
  const __m512i heads = OfBlocks(WordAt(step), WordAt(step + kStride));
  const __m512i words = OfBlocks(WordAt(step + 4), WordAt(step + kStride + 4));
  const __m512i low =
      _mm512_and_si512(_mm512_srlv_epi32(words, lanes_times(4)), _mm512_set1_epi32(15));
  const __m512i high = _mm512_and_si512(
      _mm512_srlv_epi32(_mm512_srli_epi32(heads, 16), lanes_times(2)), _mm512_set1_epi32(3));
  const __m512i sum = _mm512_add_epi32(low, _mm512_slli_epi32(high, 4));
  scales = _mm512_mul_ps(HalvesToF32(heads),
                         _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(32))));
  for (int64_t q = 0; q < 4; ++q) {
    const __m512i packed = Load512(step + q / 2 * kStride + 8 + 64 * (q % 2));
    codes[q][0] = LowNibbles(packed);
    codes[q][1] = HighNibbles(packed);
  }
  LookUpCodes(*this);
}

// ---- Blocks of 256 with sub-blocks of 16, one of them.

template <>
HWY_INLINE Quads<BlockQ6_K>::Quads(const uint8_t* step) {
  const __m512i ints = _mm512_cvtepi8_epi32(Load128(step + 192));
  scales = _mm512_mul_ps(_mm512_cvtepi32_ps(ints), BroadcastHalf(step + 208));
  for (int64_t half = 0; half < 2; ++half) {
    const __m512i low = Load512(step + 64 * half);
    const __m512i high = Twice256(step + 128 + 32 * half);
    const __m512i high_of_low = _mm512_sllv_epi16(high, ByHalves(4, 2));
    const __m512i high_of_high = _mm512_srlv_epi16(high, ByHalves(0, 2));
    codes[2 * half][0] = OrBits(LowNibbles(low), high_of_low, 0x30);
    codes[2 * half + 1][0] = OrBits(HighNibbles(low), high_of_high, 0x30);
  }
}

// Codes of two bits.
template <class Block>
HWY_INLINE void LoadTwoBits(const uint8_t* packed, Quads<Block>& quads) {
  const __m512i all = Load512(packed), mask = _mm512_set1_epi8(3);
  for (unsigned q = 0; q < 4; ++q) {
    quads.codes[q][0] = _mm512_and_si512(_mm512_srli_epi16(all, 2 * q), mask);
  }
}

template <>
HWY_INLINE Quads<BlockQ2_K>::Quads(const uint8_t* step) {
  const __m128i both = Load128(step), mask = _mm_set1_epi8(15);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(both, 4), mask);
  scales = _mm512_mul_ps(BroadcastHalf(step + 80), BytesToF32(_mm_and_si128(both, mask)));
  minimums = _mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps(-0.0f), BroadcastHalf(step + 82)),
                           BytesToF32(high));
  LoadTwoBits(step + 16, *this);
}

template <>
HWY_INLINE Quads<BlockQ3_K>::Quads(const uint8_t* step) {
  const uint32_t a = WordAt(step + 96), b = WordAt(step + 100), c = WordAt(step + 104);
  const auto join = [](uint32_t low, uint32_t high) {
    return static_cast<int>((low & 0x0f0f0f0f) | (high & 0x03030303) << 4);
  };
  const __m128i packed =
      _mm_setr_epi32(join(a, c), join(b, c >> 2), join(a >> 4, c >> 4), join(b >> 4, c >> 6));
  const __m512i ints = _mm512_sub_epi32(_mm512_cvtepu8_epi32(packed), _mm512_set1_epi32(32));
  scales = _mm512_mul_ps(BroadcastHalf(step + 108), _mm512_cvtepi32_ps(ints));
  LoadTwoBits(step + 32, *this);
  const __m512i bits = _mm512_srlv_epi16(Twice256(step), ByHalves(0, 4));
  codes[0][0] = OrBits(codes[0][0], _mm512_slli_epi16(bits, 2), 4);
  codes[1][0] = OrBits(codes[1][0], _mm512_slli_epi16(bits, 1), 4);
  codes[2][0] = OrBits(codes[2][0], bits, 4);
  codes[3][0] = OrBits(codes[3][0], _mm512_srli_epi16(bits, 1), 4);
}

#endif  // HWY_AVX3

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
