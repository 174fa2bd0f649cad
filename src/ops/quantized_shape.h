#ifndef KVICK_OPS_QUANTIZED_SHAPE_H_
#define KVICK_OPS_QUANTIZED_SHAPE_H_

#include <array>
#include <cstdint>

namespace kvick {

using LaneOrder = std::array<uint8_t, 16>;

inline constexpr LaneOrder kAscending = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// How the kernels of Linear see a format of quantized weights: as sub-blocks of columns that share
// a scale,
//
//   weight = scale * (code - offset) + minimum,     code in [0, 255]
//
// where the minimum is that of the sub-block, or absent. A step is sixteen sub-blocks.
struct QuantizedShape {
  int64_t block_columns = 32;  // of a block as it is stored
  int64_t block_bytes = 0;
  int64_t sub_columns = 32;  // of a sub-block: 16 or 32
  int32_t offset = 0;        // of codes; 0 where there are minimums
  bool has_minimums = false;
  // In which order AVX-512 unpacks the sub-blocks of a step: four at a time.
  LaneOrder order = kAscending;
  // Whether every other four lanes have the second half of a sub-block's columns first.
  bool crosses_halves = false;

  constexpr int64_t step_columns() const { return 16 * sub_columns; }
  constexpr int64_t step_blocks() const { return step_columns() / block_columns; }
  constexpr int64_t step_bytes() const { return step_blocks() * block_bytes; }

  // The sub-block of each lane, after a transposition of four quads.
  constexpr LaneOrder lanes() const {
    LaneOrder lanes{};
    for (unsigned i = 0; i < 16; ++i) lanes[i] = order[i % 4 * 4 + i / 4];
    return lanes;
  }

  // The first of the four columns of its sub-block that vector v has in a lane.
  constexpr int64_t lane_column(int64_t v, int64_t lane) const {
    const int64_t half = crosses_halves && lane / 4 % 2 == 1 ? sub_columns / 2 : 0;
    return (4 * v + half) % sub_columns;
  }
};

inline constexpr LaneOrder kEvenThenOdd = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
inline constexpr LaneOrder kPairsOfHalves = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};

}  // namespace kvick

#endif  // KVICK_OPS_QUANTIZED_SHAPE_H_
