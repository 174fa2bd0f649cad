#ifndef KVICK_BASE_AMX_TILES_H_
#define KVICK_BASE_AMX_TILES_H_

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

namespace kvick {

// The matrix tiles of Intel AMX, twice: the instructions, and their arithmetic in plain memory.
// Both have the same static functions, so that a kernel takes one of them as a template parameter.
//
// A thread has 8 tiles, each of up to 16 rows of up to 64 bytes; Configure gives every tile its
// shape and makes it zero. Loads, stores and products touch what lies inside the shapes.
//
// Source    Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS

inline constexpr int kNumTiles = 8;
inline constexpr int kTileRows = 16;
inline constexpr int kTileRowBytes = 64;

// The operand of LDTILECFG, byte by byte.
struct alignas(64) TileConfig {
  uint8_t palette_id = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t num_rows[16] = {};

  // REQUIRES: rows in [1, 16]; bytes in [4, 64], a multiple of 4.
  constexpr void SetShape(int tile, int rows, int bytes) {
    num_rows[tile] = static_cast<uint8_t>(rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

// REQUIRES: IsaAvailable(Isa::kAmx) has been asked and was true.
struct HardwareTiles {
  static void Configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" : : "m"(config));  // sets every tile to zero
  }

  // Gives the tiles back, so that a context switch need not save them.
  static void Release() { asm volatile("tilerelease"); }

  template <int kTile>
  static void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }

  // Row r of the tile lies at data + r * stride_bytes.
  template <int kTile>
  static void Load(const void* data, int64_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(data), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }

  template <int kTile>
  static void Store(void* data, int64_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(data), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }

  // TDPBF16PS: C[m][n] += sum_k A[m][2k] * B[k][2n] + A[m][2k+1] * B[k][2n+1]; A and B bf16, C f32.
  // REQUIRES: three tiles, C [M, N] f32, A [M, 2K] bf16, B [K, 2N] bf16.
  template <int kC, int kA, int kB>
  static void DotBF16() {
    static_assert(kC != kA && kC != kB && kA != kB);
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};

// The bits of HardwareTiles (NaN payloads aside), and a failed KVICK_CHECK where the instructions
// would fault. The tiles are thread-local, as the registers are.
// REQUIRES: IsaAvailable(Isa::kAmxEmulated).
struct EmulatedTiles {
  static void Configure(const TileConfig& config);
  static void Release();

  template <int kTile>
  static void Zero() {
    ZeroTile(kTile);
  }

  template <int kTile>
  static void Load(const void* data, int64_t stride_bytes) {
    LoadTile(kTile, static_cast<const std::byte*>(data), stride_bytes);
  }

  template <int kTile>
  static void Store(void* data, int64_t stride_bytes) {
    StoreTile(kTile, static_cast<std::byte*>(data), stride_bytes);
  }

  template <int kC, int kA, int kB>
  static void DotBF16() {
    static_assert(kC != kA && kC != kB && kA != kB);
    DotTiles(kC, kA, kB);
  }

 private:
  static void ZeroTile(int tile);
  static void LoadTile(int tile, const std::byte* data, int64_t stride_bytes);
  static void StoreTile(int tile, std::byte* data, int64_t stride_bytes);
  static void DotTiles(int c, int a, int b);
};

}  // namespace kvick

#endif  // defined(__x86_64__)

#endif  // KVICK_BASE_AMX_TILES_H_
