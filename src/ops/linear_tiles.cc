#include "ops/linear_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/threads.h"
#include "ops/parallel_rows.h"

namespace kvick {
namespace {

constexpr int64_t kStepCols = 32;     // of a weight row, in one tile
constexpr int64_t kGroupTokens = 16;  // columns of one tile

constexpr int kMaxParts = 2;  // bf16 numbers that an activation is the sum of

// One part of one group.
int64_t PartBytes(int64_t num_cols) {
  return RoundUp(num_cols, kStepCols) * kGroupTokens * int64_t{sizeof(uint16_t)};
}

int64_t GroupBytes(int64_t num_cols) { return kMaxParts * PartBytes(num_cols); }

}  // namespace

int64_t TileScratchBytes(int64_t max_tokens, int64_t num_cols) {
  return CeilDiv(max_tokens, kGroupTokens) * GroupBytes(num_cols);
}

#if defined(__x86_64__)

namespace {

int NumParts(TilePrecision precision) { return precision == TilePrecision::kSplit ? 2 : 1; }

// What the bf16 numbers of the parts before leave of x: exact, as they hold its leading bits.
float Remainder(float x, int part) { return part == 0 ? x : x - BF16ToF32(F32ToBF16(x)); }

// Packs one part of one group of tokens as [pairs of columns][tokens][2], so that a tile of B is 16
// consecutive rows. Columns are filled up with zeros to whole tiles; a last group has only its own
// tokens.
void PackPart(const LinearArgs& args, int64_t group, int part, std::byte* packed) {
  const int64_t num_cols = args.w.num_cols, first = group * kGroupTokens;
  const int64_t num_tokens = std::min(kGroupTokens, args.num_tokens - first);
  const int64_t num_pairs = RoundUp(num_cols, kStepCols) / 2;
  auto* pairs = reinterpret_cast<uint32_t*>(packed);
  for (int64_t t = 0; t < num_tokens; ++t) {
    const float* x = args.x + (first + t) * num_cols;
    const auto bits = [&](int64_t col) {
      return col < num_cols ? uint32_t{F32ToBF16(Remainder(x[col], part))} : 0;
    };
    for (int64_t p = 0; p < num_pairs; ++p) {
      pairs[p * num_tokens + t] = bits(2 * p) | bits(2 * p + 1) << 16;
    }
  }
}

// Up to 2 x 2 tiles of outputs: rows of w by tokens. The second of each may be empty.
struct PatchShape {
  int num_rows[2] = {};
  int num_tokens[2] = {};

  friend bool operator==(const PatchShape&, const PatchShape&) = default;
};

// Tile registers: C[i][j] is 2 * i + j, A[i] is 4 + i, B[j] is 6 + j.
TileConfig ConfigOf(const PatchShape& shape) {
  TileConfig config;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (shape.num_rows[i] > 0 && shape.num_tokens[j] > 0)
        config.SetShape(2 * i + j, shape.num_rows[i], 4 * shape.num_tokens[j]);
    }
    if (shape.num_rows[i] > 0) config.SetShape(4 + i, shape.num_rows[i], kTileRowBytes);
    if (shape.num_tokens[i] > 0) config.SetShape(6 + i, kTileRows, 4 * shape.num_tokens[i]);
  }
  return config;
}

struct Patch {
  PatchShape shape;
  int64_t first_row;
  int64_t first_token;
};

template <class Tiles>
class TileTask {
 public:
  TileTask(const LinearArgs& args, const std::byte* packed)
      : args_(args),
        packed_(packed),
        row_bytes_(args.w.num_cols * int64_t{sizeof(uint16_t)}),
        part_bytes_(PartBytes(args.w.num_cols)),
        group_bytes_(GroupBytes(args.w.num_cols)),
        num_parts_(NumParts(args.precision)) {}

  // Computes rows [begin, end) for all tokens. All tokens pass over two tiles of rows before the
  // next.
  void Run(int64_t begin, int64_t end) {
    PatchShape configured;
    for (int64_t row = begin; row < end; row += 2 * kTileRows) {
      for (int64_t token = 0; token < args_.num_tokens; token += 2 * kGroupTokens) {
        const Patch patch{ShapeAt(row, end, token), row, token};
        if (!(patch.shape == configured)) Tiles::Configure(ConfigOf(patch.shape));
        configured = patch.shape;
        Compute(patch);
      }
    }
    Tiles::Release();
  }

 private:
  PatchShape ShapeAt(int64_t row, int64_t end_row, int64_t token) const {
    PatchShape shape;
    for (int i = 0; i < 2; ++i) {
      shape.num_rows[i] =
          static_cast<int>(std::clamp<int64_t>(end_row - row - i * kTileRows, 0, kTileRows));
      shape.num_tokens[i] = static_cast<int>(
          std::clamp<int64_t>(args_.num_tokens - token - i * kGroupTokens, 0, kGroupTokens));
    }
    return shape;
  }

  void Compute(const Patch& patch) const {
    const bool two_row_tiles = patch.shape.num_rows[1] > 0;
    const bool two_groups = patch.shape.num_tokens[1] > 0;
    if (two_row_tiles && two_groups) return ComputeTiles<2, 2>(patch);
    if (two_row_tiles) return ComputeTiles<2, 1>(patch);
    if (two_groups) return ComputeTiles<1, 2>(patch);
    ComputeTiles<1, 1>(patch);
  }

  template <int kRowTiles, int kGroups>
  void ComputeTiles(const Patch& patch) const {
    const int64_t num_cols = args_.w.num_cols;
    const std::byte* w = args_.w.data + patch.first_row * row_bytes_;
    Tiles::template Zero<0>();
    if constexpr (kGroups == 2) Tiles::template Zero<1>();
    if constexpr (kRowTiles == 2) Tiles::template Zero<2>();
    if constexpr (kRowTiles == 2 && kGroups == 2) Tiles::template Zero<3>();
    int64_t k = 0;
    for (; k + kStepCols <= num_cols; k += kStepCols)
      AddStep<kRowTiles, kGroups>(patch, k, w + k * int64_t{sizeof(uint16_t)}, row_bytes_);
    if (k < num_cols) {
      alignas(kTileRowBytes) std::byte tail[2 * kTileRows][kTileRowBytes] = {};
      const int num_rows = patch.shape.num_rows[0] + patch.shape.num_rows[1];
      const auto tail_bytes = static_cast<size_t>(num_cols - k) * sizeof(uint16_t);
      for (int r = 0; r < num_rows; ++r)
        std::memcpy(tail[r], w + r * row_bytes_ + k * int64_t{sizeof(uint16_t)}, tail_bytes);
      AddStep<kRowTiles, kGroups>(patch, k, tail[0], kTileRowBytes);
    }
    StoreTile<0>(patch, 0, 0);
    if constexpr (kGroups == 2) StoreTile<1>(patch, 0, 1);
    if constexpr (kRowTiles == 2) StoreTile<2>(patch, 1, 0);
    if constexpr (kRowTiles == 2 && kGroups == 2) StoreTile<3>(patch, 1, 1);
  }

  // Adds the products of columns [k, k + 32), the leading part of the activations first. w: those
  // columns of the patch's first row.
  template <int kRowTiles, int kGroups>
  void AddStep(const Patch& patch, int64_t k, const std::byte* w, int64_t w_stride_bytes) const {
    Tiles::template Load<4>(w, w_stride_bytes);
    if constexpr (kRowTiles == 2)
      Tiles::template Load<5>(w + kTileRows * w_stride_bytes, w_stride_bytes);
    for (int part = 0; part < num_parts_; ++part) {
      const std::byte* group =
          packed_ + patch.first_token / kGroupTokens * group_bytes_ + part * part_bytes_;
      LoadTokens<6>(group, patch.shape.num_tokens[0], k);
      Tiles::template DotBF16<0, 4, 6>();
      if constexpr (kRowTiles == 2) Tiles::template DotBF16<2, 5, 6>();
      if constexpr (kGroups == 2) {
        LoadTokens<7>(group + group_bytes_, patch.shape.num_tokens[1], k);
        Tiles::template DotBF16<1, 4, 7>();
        if constexpr (kRowTiles == 2) Tiles::template DotBF16<3, 5, 7>();
      }
    }
  }

  template <int kTile>
  static void LoadTokens(const std::byte* group, int num_tokens, int64_t k) {
    const int64_t pair_bytes = num_tokens * int64_t{sizeof(uint32_t)};
    Tiles::template Load<kTile>(group + k / 2 * pair_bytes, pair_bytes);
  }

  // Turns a tile from [row][token] to y's [token][row].
  template <int kTile>
  void StoreTile(const Patch& patch, int row_tile, int group) const {
    alignas(kTileRowBytes) float sums[kTileRows][kGroupTokens];
    Tiles::template Store<kTile>(sums, sizeof(sums[0]));
    const int64_t row = patch.first_row + row_tile * kTileRows;
    const int64_t token = patch.first_token + group * kGroupTokens;
    for (int t = 0; t < patch.shape.num_tokens[group]; ++t) {
      float* y = args_.y + (token + t) * args_.w.num_rows + row;
      for (int r = 0; r < patch.shape.num_rows[row_tile]; ++r)
        y[r] = args_.bias == nullptr ? sums[r][t] : sums[r][t] + args_.bias[row + r];
    }
  }

  const LinearArgs& args_;
  const std::byte* packed_;
  int64_t row_bytes_;
  int64_t part_bytes_;
  int64_t group_bytes_;
  int num_parts_;
};

}  // namespace

template <class Tiles>
void LinearOnTiles(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch) {
  std::byte* packed = scratch.data();
  KVICK_CHECK(reinterpret_cast<uintptr_t>(packed) % kTileRowBytes == 0);
  const int64_t part_bytes = PartBytes(args.w.num_cols), group_bytes = GroupBytes(args.w.num_cols);
  ParallelFor(exec.num_threads, CeilDiv(args.num_tokens, kGroupTokens), [&](int64_t group, int) {
    for (int part = 0; part < NumParts(args.precision); ++part)
      PackPart(args, group, part, packed + group * group_bytes + part * part_bytes);
  });
  const int64_t row_bytes = args.w.num_cols * int64_t{sizeof(uint16_t)};
  const int64_t rows_per_task = WeightRowsPerTask(row_bytes, 2 * kTileRows);
  ParallelFor(exec.num_threads, CeilDiv(args.w.num_rows, rows_per_task), [&](int64_t task, int) {
    const int64_t begin = task * rows_per_task;
    TileTask<Tiles>(args, packed).Run(begin, std::min(begin + rows_per_task, args.w.num_rows));
  });
}

template void LinearOnTiles<HardwareTiles>(const Exec&, const LinearArgs&, std::span<std::byte>);
template void LinearOnTiles<EmulatedTiles>(const Exec&, const LinearArgs&, std::span<std::byte>);

#endif  // defined(__x86_64__)

}  // namespace kvick
