#ifndef KVICK_OPS_LINEAR_TILES_H_
#define KVICK_OPS_LINEAR_TILES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/amx_tiles.h"
#include "base/exec.h"
#include "ops/linear.h"

namespace kvick {

// Linear for bf16 weights on matrix tiles. The weights are the A operand, loaded in place, 16 rows
// by 32 columns at a time. 16 tokens, packed as one bf16 or two, are the columns of B. A row of A
// and a column of B give one element of C, which does not depend on the other rows and columns.

// Bytes that LinearOnTiles packs the activations into.
int64_t TileScratchBytes(int64_t max_tokens, int64_t num_cols);

// As Linear. Tiles is HardwareTiles or EmulatedTiles (base/amx_tiles.h).
template <class Tiles>
void LinearOnTiles(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch);

}  // namespace kvick

#endif  // KVICK_OPS_LINEAR_TILES_H_
