// Quantized weights in the registers of AVX-512, a step at a time, as VPDPBUSD takes them.
//
// A quad is four sub-blocks, in the order of the shape. Each 128 bits of a vector hold sixteen
// columns of one of them; where sub-blocks have 32 columns, the second vector holds the other
// sixteen.

#if defined(KVICK_OPS_QUANTIZED_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_LANES_INL_H_
#undef KVICK_OPS_QUANTIZED_LANES_INL_H_
#else
#define KVICK_OPS_QUANTIZED_LANES_INL_H_
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

HWY_INLINE __m512i LookUpCode(__m512i nibbles) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(Load128(kUnevenCodes)), nibbles);
}

// Of 32-bit words, in each 128 bits.
HWY_INLINE void Transpose4x4(const __m512i (&rows)[4], __m512i* columns) {
  const __m512i ab_low = _mm512_unpacklo_epi32(rows[0], rows[1]);
  const __m512i ab_high = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i cd_low = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i cd_high = _mm512_unpackhi_epi32(rows[2], rows[3]);
  columns[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
  columns[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
  columns[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
  columns[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

// The step as VPDPBUSD takes it: vector v has columns 4v to 4v + 3 of all sixteen sub-blocks, so
// that the sums of sub-blocks come out without adding lanes. Lanes are in the order of the shape's
// lanes().
template <class Block>
struct Lanes {
  static constexpr int kVectors = Block::kShape.sub_columns / 4;

  __m512i codes[kVectors];
  __m512 scales, minimums;

  Lanes() = default;

  explicit HWY_INLINE Lanes(const uint8_t* step) {
    const Quads<Block> quads(step);
    Transpose(quads);
    static constexpr LaneOrder kLanes = Block::kShape.lanes();
    const __m512i order = _mm512_cvtepu8_epi32(Load128(kLanes.data()));
    scales = _mm512_permutexvar_ps(order, quads.scales);
    if constexpr (Block::kShape.has_minimums) {
      minimums = _mm512_permutexvar_ps(order, quads.minimums);
    }
  }

  HWY_INLINE void Transpose(const Quads<Block>& quads) {
    for (int i = 0; i < Quads<Block>::kVectors; ++i) {
      Transpose4x4({quads.codes[0][i], quads.codes[1][i], quads.codes[2][i], quads.codes[3][i]},
                   codes + 4 * i);
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

#endif  // HWY_AVX3

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
