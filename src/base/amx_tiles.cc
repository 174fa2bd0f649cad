#include "base/amx_tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "base/check.h"

namespace kvick {
namespace {

struct Tile {
  alignas(kTileRowBytes) std::byte rows[kTileRows][kTileRowBytes] = {};
  int num_rows = 0;
  int row_bytes = 0;
};

constinit thread_local Tile tiles[kNumTiles];

// Denormal operands and results count as zero, to nearest even, no exceptions: what the tiles do
// without asking this register.
class ScopedTileRounding {
 public:
  ScopedTileRounding() : saved_(_mm_getcsr()) {
    _mm_setcsr(kMasked | kFlushToZero | kDenormalsAreZero);
  }
  ~ScopedTileRounding() { _mm_setcsr(saved_); }
  ScopedTileRounding(const ScopedTileRounding&) = delete;
  ScopedTileRounding& operator=(const ScopedTileRounding&) = delete;

 private:
  static constexpr unsigned kMasked = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  unsigned saved_;
};

// The even and the odd elements of 16 pairs of bf16, as f32. The mask spares a false warning that
// gcc 12 gives for its own unmasked shift.
[[gnu::target("avx512f")]] inline __m512 EvenElements(__m512i pairs) {
  constexpr __mmask16 kAll = 0xffff;
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, pairs, 16));
}

[[gnu::target("avx512f")]] inline __m512 OddElements(__m512i pairs) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, mask));
}

// 8 rows keep 16 accumulators in registers.
constexpr int kRowsAtOnce = 8;

// Never inlined: the compiler could otherwise move arithmetic across the change of rounding.
[[gnu::noinline, gnu::target("avx512f")]] void DotRows(Tile& c, const Tile& a, const Tile& b,
                                                       int first_row) {
  __m512 even_sums[kRowsAtOnce], odd_sums[kRowsAtOnce];
  for (int r = 0; r < kRowsAtOnce; ++r) even_sums[r] = odd_sums[r] = _mm512_setzero_ps();
  for (int64_t k = 0; k < b.num_rows; ++k) {
    const __m512i b_pairs = _mm512_load_si512(b.rows[k]);
    const __m512 b_even = EvenElements(b_pairs), b_odd = OddElements(b_pairs);
    for (int r = 0; r < kRowsAtOnce; ++r) {
      uint32_t pair;
      std::memcpy(&pair, &a.rows[first_row + r][4 * k], sizeof(pair));
      const __m512i a_pair = _mm512_set1_epi32(static_cast<int>(pair));
      even_sums[r] = _mm512_fmadd_ps(EvenElements(a_pair), b_even, even_sums[r]);
      odd_sums[r] = _mm512_fmadd_ps(OddElements(a_pair), b_odd, odd_sums[r]);
    }
  }
  for (int r = 0; r < kRowsAtOnce && first_row + r < c.num_rows; ++r) {
    std::byte* row = c.rows[first_row + r];
    const __m512 sum = _mm512_add_ps(_mm512_load_ps(row), _mm512_add_ps(even_sums[r], odd_sums[r]));
    _mm512_store_ps(row, sum);  // columns beyond the shape are never seen
  }
}

}  // namespace

void EmulatedTiles::Configure(const TileConfig& config) {
  KVICK_CHECK(config.palette_id == 1 && config.start_row == 0);
  for (uint8_t byte : config.reserved) KVICK_CHECK(byte == 0);
  for (int i = 0; i < 16; ++i) {
    const int rows = config.num_rows[i], bytes = config.row_bytes[i];
    KVICK_CHECK((rows == 0) == (bytes == 0) && rows <= kTileRows && bytes <= kTileRowBytes);
    KVICK_CHECK(i < kNumTiles || rows == 0);
    if (i >= kNumTiles) continue;
    tiles[i] = Tile{};
    tiles[i].num_rows = rows;
    tiles[i].row_bytes = bytes;
  }
}

void EmulatedTiles::Release() {
  for (Tile& tile : tiles) tile = Tile{};
}

void EmulatedTiles::ZeroTile(int tile) {
  KVICK_CHECK(tiles[tile].num_rows > 0);
  std::memset(tiles[tile].rows, 0, sizeof(tiles[tile].rows));
}

void EmulatedTiles::LoadTile(int tile, const std::byte* data, int64_t stride_bytes) {
  Tile& target = tiles[tile];
  KVICK_CHECK(target.num_rows > 0);
  for (int r = 0; r < target.num_rows; ++r)
    std::memcpy(target.rows[r], data + r * stride_bytes, static_cast<size_t>(target.row_bytes));
}

void EmulatedTiles::StoreTile(int tile, std::byte* data, int64_t stride_bytes) {
  const Tile& source = tiles[tile];
  KVICK_CHECK(source.num_rows > 0);
  for (int r = 0; r < source.num_rows; ++r)
    std::memcpy(data + r * stride_bytes, source.rows[r], static_cast<size_t>(source.row_bytes));
}

void EmulatedTiles::DotTiles(int c, int a, int b) {
  KVICK_CHECK(tiles[c].num_rows > 0 && tiles[c].row_bytes % 4 == 0);
  KVICK_CHECK(tiles[a].num_rows == tiles[c].num_rows && tiles[b].row_bytes == tiles[c].row_bytes);
  KVICK_CHECK(tiles[a].row_bytes == 4 * tiles[b].num_rows && tiles[b].num_rows > 0);
  const ScopedTileRounding rounding;
  for (int row = 0; row < tiles[c].num_rows; row += kRowsAtOnce)
    DotRows(tiles[c], tiles[a], tiles[b], row);
}

}  // namespace kvick

#endif  // defined(__x86_64__)
