#include "ops/linear_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/flush_subnormals.h"
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

int NumParts(Activations activations) { return activations == Activations::kSplit ? 2 : 1; }

// Columns of a row that are rounded at once.
constexpr int64_t kRoundedCols = 512;

// bits[i] = part `part` of x[i] for i in [0, num), then zeros to kRoundedCols. The second part is
// what the first leaves of x: exact, as the first holds its leading bits.
void RoundPart(const float* x, int64_t num, int part, uint16_t* bits) {
  std::fill(bits + num, bits + kRoundedCols, uint16_t{0});
  ConvertFromF32(DType::kBF16, x, num, bits);
  if (part == 0) return;
  float rest[kRoundedCols];
  for (int64_t i = 0; i < num; ++i) rest[i] = x[i] - BF16ToF32(bits[i]);
  ConvertFromF32(DType::kBF16, rest, num, bits);
}

// Packs one part of one group of tokens as [pairs of columns][tokens][2], so that a tile of B is 16
// consecutive rows. Columns are filled up with zeros to whole tiles; a last group has only its own
// tokens.
void PackPart(const LinearArgs& args, int64_t group, int part, std::byte* packed) {
  const int64_t num_cols = args.w.num_cols, first = group * kGroupTokens;
  const int64_t num_tokens = std::min(kGroupTokens, args.num_tokens - first);
  const int64_t num_padded = RoundUp(num_cols, kStepCols);
  auto* pairs = reinterpret_cast<uint32_t*>(packed);
  for (int64_t t = 0; t < num_tokens; ++t) {
    const float* x = args.x + (first + t) * num_cols;
    for (int64_t col = 0; col < num_padded; col += kRoundedCols) {
      uint16_t bits[kRoundedCols];
      RoundPart(x + col, std::min(kRoundedCols, num_cols - col), part, bits);
      const int64_t num = std::min(kRoundedCols, num_padded - col);
      for (int64_t i = 0; i < num; i += 2) {
        pairs[(col + i) / 2 * num_tokens + t] = bits[i] | uint32_t{bits[i + 1]} << 16;
      }
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

// Weights of two tiles of rows, a tile at a time: in place in their matrix, or packed.
struct WeightTiles {
  const std::byte* data = nullptr;  // step 0, row 0
  int64_t row_stride = 0;           // bytes
  int64_t step_stride = 0;          // from 32 columns to the next

  const std::byte* At(int64_t step, int row_tile) const {
    return data + step * step_stride + row_tile * kTileRows * row_stride;
  }
};

// For one patch of tokens, weights are read in place, at the speed of memory. For more, they are
// copied to a block of kBlockCols columns that stays in L1 while all patches of kBlockTokens tokens
// use it, because rows that are 8 KiB apart would evict each other there. Meanwhile sums wait in
// memory, and continue in the same order.
constexpr int64_t kPatchTokens = 2 * kGroupTokens;
constexpr int64_t kBlockCols = 512;    // 32 KiB of weights
constexpr int64_t kBlockTokens = 512;  // 64 KiB of sums

// On the stack of a thread: 96 KiB.
template <class Tiles>
class TileTask {
 public:
  TileTask(const LinearArgs& args, const std::byte* packed)
      : args_(args),
        packed_(packed),
        row_bytes_(args.w.num_cols * int64_t{sizeof(uint16_t)}),
        part_bytes_(PartBytes(args.w.num_cols)),
        group_bytes_(GroupBytes(args.w.num_cols)),
        num_parts_(NumParts(args.activations)),
        copies_weights_(args.num_tokens > kPatchTokens),
        block_cols_(copies_weights_ ? kBlockCols : args.w.num_cols) {}

  // Computes rows [begin, end) for all tokens: two tiles of rows for all tokens, then the next two.
  void Run(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += 2 * kTileRows) {
      for (int64_t token = 0; token < args_.num_tokens; token += kBlockTokens) {
        for (int64_t col = 0; col < args_.w.num_cols; col += block_cols_) {
          RunBlock(row, end, token, col);
        }
      }
    }
    Tiles::Release();
  }

 private:
  // Two tiles of rows, up to kBlockTokens tokens, block_cols_ columns.
  void RunBlock(int64_t row, int64_t end_row, int64_t first_token, int64_t col) {
    const int64_t num_cols = std::min(block_cols_, args_.w.num_cols - col);
    const int64_t num_rows = std::min<int64_t>(2 * kTileRows, end_row - row);
    const std::byte* w = args_.w.data + row * row_bytes_ + col * int64_t{sizeof(uint16_t)};
    WeightTiles tiles{w, row_bytes_, kTileRowBytes};
    if (copies_weights_) tiles = CopyTiles(w, num_rows, num_cols);
    const int64_t end_token = std::min(first_token + kBlockTokens, args_.num_tokens);
    for (int64_t token = first_token; token < end_token; token += kPatchTokens) {
      const Patch patch{ShapeAt(row, end_row, token), row, token};
      if (patch.shape != configured_) Tiles::Configure(ConfigOf(patch.shape));
      configured_ = patch.shape;
      Compute(patch, {tiles, col, num_cols});
    }
  }

  // Columns [first, first + num) of the weights of a patch.
  struct ColumnBlock {
    WeightTiles tiles;
    int64_t first;
    int64_t num;
  };

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

  // Copies rows of up to kBlockCols columns, tile by tile, with zeros up to a whole step.
  WeightTiles CopyTiles(const std::byte* w, int64_t num_rows, int64_t num_cols) {
    constexpr int64_t kStepBytes = 2 * kTileRows * kTileRowBytes;
    const int64_t num_bytes = num_cols * int64_t{sizeof(uint16_t)};
    for (int64_t r = 0; r < num_rows; ++r) {
      std::byte* out = packed_weights_ + r * kTileRowBytes;
      int64_t i = 0;
      for (; i + kTileRowBytes <= num_bytes; i += kTileRowBytes, out += kStepBytes)
        std::memcpy(out, w + r * row_bytes_ + i, kTileRowBytes);
      if (i == num_bytes) continue;
      std::memset(out, 0, kTileRowBytes);
      std::memcpy(out, w + r * row_bytes_ + i, static_cast<size_t>(num_bytes - i));
    }
    return {packed_weights_, kTileRowBytes, kStepBytes};
  }

  void Compute(const Patch& patch, const ColumnBlock& block) {
    const bool two_row_tiles = patch.shape.num_rows[1] > 0;
    const bool two_groups = patch.shape.num_tokens[1] > 0;
    if (two_row_tiles && two_groups) return ComputeTiles<2, 2>(patch, block);
    if (two_row_tiles) return ComputeTiles<2, 1>(patch, block);
    if (two_groups) return ComputeTiles<1, 2>(patch, block);
    ComputeTiles<1, 1>(patch, block);
  }

  template <int kRowTiles, int kGroups>
  void ComputeTiles(const Patch& patch, const ColumnBlock& block) {
    const bool is_first = block.first == 0;
    const bool is_last = block.first + block.num == args_.w.num_cols;
    const auto for_each_sum = [](auto&& body) {
      body.template operator()<0, 0, 0>();
      if constexpr (kGroups == 2) body.template operator()<1, 0, 1>();
      if constexpr (kRowTiles == 2) body.template operator()<2, 1, 0>();
      if constexpr (kRowTiles == 2 && kGroups == 2) body.template operator()<3, 1, 1>();
    };
    auto& sums = sums_[patch.first_token % kBlockTokens / kPatchTokens];
    for_each_sum([&]<int kTile, int, int>() {
      if (is_first) {
        Tiles::template Zero<kTile>();
      } else {
        Tiles::template Load<kTile>(sums[kTile], sizeof(sums[kTile][0]));
      }
    });
    AddSteps<kRowTiles, kGroups>(patch, block);
    for_each_sum([&]<int kTile, int kRowTile, int kGroup>() {
      Tiles::template Store<kTile>(sums[kTile], sizeof(sums[kTile][0]));
      if (is_last) WriteOut(patch, kRowTile, kGroup, sums[kTile]);
    });
  }

  template <int kRowTiles, int kGroups>
  void AddSteps(const Patch& patch, const ColumnBlock& block) {
    const int64_t num_whole = block.num / kStepCols;
    for (int64_t step = 0; step < num_whole; ++step)
      AddStep<kRowTiles, kGroups>(patch, block.tiles, step, block.first + step * kStepCols);
    const int64_t num_left = block.num % kStepCols;
    if (num_left == 0) return;
    const int64_t first_col = block.first + num_whole * kStepCols;
    if (copies_weights_) {
      return AddStep<kRowTiles, kGroups>(patch, block.tiles, num_whole, first_col);
    }
    const int num_rows = patch.shape.num_rows[0] + patch.shape.num_rows[1];
    const WeightTiles tail = CopyTiles(block.tiles.At(num_whole, 0), num_rows, num_left);
    AddStep<kRowTiles, kGroups>(patch, tail, 0, first_col);
  }

  // Adds the products of columns [k, k + 32), the leading part of the activations first.
  template <int kRowTiles, int kGroups>
  void AddStep(const Patch& patch, const WeightTiles& w, int64_t step, int64_t k) const {
    Tiles::template Load<4>(w.At(step, 0), w.row_stride);
    if constexpr (kRowTiles == 2) Tiles::template Load<5>(w.At(step, 1), w.row_stride);
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

  using TileSums = float[kTileRows][kGroupTokens];

  // Transposes a tile from [row][token] to y's [token][row].
  void WriteOut(const Patch& patch, int row_tile, int group, const TileSums& sums) const {
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
  bool copies_weights_;
  int64_t block_cols_;
  PatchShape configured_;
  alignas(kTileRowBytes) std::byte packed_weights_[2 * kTileRows * kBlockCols * sizeof(uint16_t)];
  alignas(kTileRowBytes) TileSums sums_[kBlockTokens / kPatchTokens][4];
};

}  // namespace

template <class Tiles>
void LinearOnTiles(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch) {
  std::byte* packed = scratch.data();
  const int64_t part_bytes = PartBytes(args.w.num_cols), group_bytes = GroupBytes(args.w.num_cols);
  ParallelKernel(exec.num_threads, CeilDiv(args.num_tokens, kGroupTokens), [&](int64_t group, int) {
    for (int part = 0; part < NumParts(args.activations); ++part)
      PackPart(args, group, part, packed + group * group_bytes + part * part_bytes);
  });
  const int64_t row_bytes = args.w.num_cols * int64_t{sizeof(uint16_t)};
  const int64_t rows_per_task = WeightRowsPerTask(row_bytes, 2 * kTileRows);
  ParallelKernel(exec.num_threads, CeilDiv(args.w.num_rows, rows_per_task), [&](int64_t task, int) {
    const int64_t begin = task * rows_per_task;
    TileTask<Tiles>(args, packed).Run(begin, std::min(begin + rows_per_task, args.w.num_rows));
  });
}

template void LinearOnTiles<HardwareTiles>(const Exec&, const LinearArgs&, std::span<std::byte>);
template void LinearOnTiles<EmulatedTiles>(const Exec&, const LinearArgs&, std::span<std::byte>);

#endif  // defined(__x86_64__)

}  // namespace kvick
