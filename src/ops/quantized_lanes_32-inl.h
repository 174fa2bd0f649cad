// Lanes of the formats with blocks of 32: sixteen blocks are a step.

#if defined(KVICK_OPS_QUANTIZED_LANES_32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_LANES_32_INL_H_
#undef KVICK_OPS_QUANTIZED_LANES_32_INL_H_
#else
#define KVICK_OPS_QUANTIZED_LANES_32_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized_blocks-inl.h"
#include "ops/quantized_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// From the first four bytes of each.
template <class Block>
HWY_INLINE void LoadScales(const uint8_t* step, Lanes<Block>& lanes) {
  static constexpr LaneOrder kLanes = Block::kShape.lanes();
  const __m512i places =
      _mm512_mullo_epi32(_mm512_cvtepu8_epi32(Load128(kLanes.data())),
                         _mm512_set1_epi32(static_cast<int>(Block::kShape.block_bytes)));
  const __m512i words = _mm512_i32gather_epi32(places, step, 1);
  lanes.scales = HalvesToF32(words);
  if constexpr (Block::kShape.has_minimums) {
    lanes.minimums = HalvesToF32(_mm512_srli_epi32(words, 16));
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

// Blocks of nibbles alone: transposed before they are split.
template <class Block>
HWY_INLINE void LoadNibbles(const uint8_t* step, int64_t offset, Lanes<Block>& lanes) {
  constexpr int64_t kStride = Block::kShape.block_bytes;
  __m512i packed[4];
  for (int64_t q = 0; q < 4; ++q) {
    packed[q] = Load4x128(step + 4 * q * kStride + offset, kStride);
  }
  Transpose4x4(packed, lanes.codes);
  for (int64_t v = 0; v < 4; ++v) {
    lanes.codes[4 + v] = HighNibbles(lanes.codes[v]);
    lanes.codes[v] = LowNibbles(lanes.codes[v]);
  }
}

template <>
HWY_INLINE Quads<BlockQ8_0>::Quads(const uint8_t* step) {
  constexpr int64_t kStride = 34;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (int64_t q = 0; q < 4; ++q) {
    const uint8_t* first = step + 4 * q * kStride + 2;
    codes[q][0] = _mm512_xor_si512(Load4x128(first, kStride), sign);
    codes[q][1] = _mm512_xor_si512(Load4x128(first + 16, kStride), sign);
  }
}

template <>
HWY_INLINE Lanes<BlockQ8_0>::Lanes(const uint8_t* step) {
  Transpose(Quads<BlockQ8_0>(step));
  LoadScales(step, *this);
}

template <>
HWY_INLINE Lanes<BlockQ4_0>::Lanes(const uint8_t* step) {
  LoadNibbles(step, 2, *this);
  LoadScales(step, *this);
}

template <>
HWY_INLINE Lanes<BlockQ4_1>::Lanes(const uint8_t* step) {
  LoadNibbles(step, 4, *this);
  LoadScales(step, *this);
}

template <>
HWY_INLINE Quads<BlockQ5_0>::Quads(const uint8_t* step) {
  LoadNibbles(step, 6, *this);
  AddFifthBits(step, 2, *this);
}

template <>
HWY_INLINE Lanes<BlockQ5_0>::Lanes(const uint8_t* step) {
  Transpose(Quads<BlockQ5_0>(step));
  LoadScales(step, *this);
}

template <>
HWY_INLINE Quads<BlockQ5_1>::Quads(const uint8_t* step) {
  LoadNibbles(step, 8, *this);
  AddFifthBits(step, 4, *this);
}

template <>
HWY_INLINE Lanes<BlockQ5_1>::Lanes(const uint8_t* step) {
  Transpose(Quads<BlockQ5_1>(step));
  LoadScales(step, *this);
}

template <>
HWY_INLINE Lanes<BlockIQ4_NL>::Lanes(const uint8_t* step) {
  LoadNibbles(step, 2, *this);
  for (__m512i& v : codes) v = LookUpCode(v);
  LoadScales(step, *this);
}

#endif  // HWY_AVX3

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
