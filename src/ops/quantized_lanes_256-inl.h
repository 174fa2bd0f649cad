// Lanes of the formats with blocks of 256: one block, or two, are a step.

#if defined(KVICK_OPS_QUANTIZED_LANES_256_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_LANES_256_INL_H_
#undef KVICK_OPS_QUANTIZED_LANES_256_INL_H_
#else
#define KVICK_OPS_QUANTIZED_LANES_256_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized_blocks-inl.h"
#include "ops/quantized_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// ---- Blocks of 256 with sub-blocks of 32, two of them.

// Eight lanes of each block's value.
HWY_INLINE __m512i OfBlocks(uint32_t first, uint32_t second) {
  return _mm512_inserti64x4(_mm512_set1_epi32(static_cast<int>(first)),
                            _mm256_set1_epi32(static_cast<int>(second)), 1);
}

// The 6-bit scales and minimums of both blocks (see SixBitScales), in the order of lanes.
template <class Block>
HWY_INLINE void LoadSixBitScales(const uint8_t* step, Lanes<Block>& lanes) {
  constexpr int kWord0 = 1, kWord1 = 2, kWord2 = 3;  // in a header; d and dmin are before them
  const uint8_t* next = step + Block::kShape.block_bytes;
  const __m256i headers =
      _mm256_inserti128_si256(_mm256_castsi128_si256(Load128(step)), Load128(next), 1);
  const __m256i low_bits =
      _mm256_srlv_epi32(_mm256_shuffle_epi32(headers, _MM_SHUFFLE(kWord2, kWord1, kWord2, kWord0)),
                        _mm256_setr_epi32(0, 0, 0, 4, 0, 0, 0, 4));
  const __m256i high_bits = _mm256_srli_epi32(
      _mm256_shuffle_epi32(headers, _MM_SHUFFLE(kWord1, kWord1, kWord0, kWord0)), 2);
  const __m256i of_blocks =
      _mm256_or_si256(_mm256_and_si256(low_bits, _mm256_set1_epi64x(0x0f0f0f0f3f3f3f3f)),
                      _mm256_and_si256(high_bits, _mm256_set1_epi64x(0x3030303000000000)));
  // Those of both blocks side by side: scales, then minimums.
  static constexpr LaneOrder kLanes = Block::kShape.lanes();
  const __m256i bytes =
      _mm256_shuffle_epi8(_mm256_permute4x64_epi64(of_blocks, _MM_SHUFFLE(3, 1, 2, 0)),
                          _mm256_broadcastsi128_si256(Load128(kLanes.data())));
  const __m128 factors = _mm_cvtph_ps(_mm_insert_epi32(
      _mm_cvtsi32_si128(static_cast<int>(WordAt(step))), static_cast<int>(WordAt(next)), 1));
  // d of the block that a lane is of.
  const __m512i place =
      _mm512_slli_epi32(_mm512_srli_epi32(_mm512_cvtepu8_epi32(Load128(kLanes.data())), 3), 1);
  const __m512 wide = _mm512_castps128_ps512(factors);
  const __m512 d = _mm512_permutexvar_ps(place, wide);
  const __m512 dmin = _mm512_permutexvar_ps(_mm512_add_epi32(place, _mm512_set1_epi32(1)), wide);
  lanes.scales = _mm512_mul_ps(d, BytesToF32(_mm256_castsi256_si128(bytes)));
  lanes.minimums = _mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps(-0.0f), dmin),
                                 BytesToF32(_mm256_extracti128_si256(bytes, 1)));
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

// Sixteen bytes have nibbles of two sub-blocks, so words are transposed before they are split.
// High nibbles stay where they are, as sixteen times the code: their scales are a sixteenth.
template <>
HWY_INLINE Lanes<BlockQ4_K>::Lanes(const uint8_t* step) {
  const uint8_t* next = step + BlockQ4_K::kShape.block_bytes;
  Transpose4x4({Load512(step + 16), Load512(step + 80), Load512(next + 16), Load512(next + 80)},
               codes);
  const __m512i even_low_odd_high = _mm512_set4_epi64(static_cast<int64_t>(0xf0f0f0f0f0f0f0f0),
                                                      static_cast<int64_t>(0xf0f0f0f0f0f0f0f0),
                                                      0x0f0f0f0f0f0f0f0f, 0x0f0f0f0f0f0f0f0f);
  for (int v = 0; v < 4; ++v) {
    const __m512i swapped = _mm512_permutex_epi64(codes[v], _MM_SHUFFLE(1, 0, 3, 2));
    codes[4 + v] = _mm512_and_si512(swapped, even_low_odd_high);
    codes[v] = _mm512_and_si512(codes[v], even_low_odd_high);
  }
  LoadSixBitScales(step, *this);
  const __m512 sixteenths =
      _mm512_mask_blend_ps(0xf0f0, _mm512_set1_ps(1.0f), _mm512_set1_ps(1.0f / 16));
  scales = _mm512_mul_ps(scales, sixteenths);
}

template <>
HWY_INLINE Quads<BlockQ5_K>::Quads(const uint8_t* step) {
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
HWY_INLINE Lanes<BlockQ5_K>::Lanes(const uint8_t* step) {
  Transpose(Quads<BlockQ5_K>(step));
  LoadSixBitScales(step, *this);
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
  for (auto& quad : codes) {
    for (__m512i& v : quad) v = LookUpCode(v);
  }
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
