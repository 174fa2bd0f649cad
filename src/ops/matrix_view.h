#ifndef KVICK_OPS_MATRIX_VIEW_H_
#define KVICK_OPS_MATRIX_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quant/weight_format.h"

namespace kvick {

// Weights [num_rows, num_cols] in place, usually in a mapped file: row-major, without gaps between
// rows. `data` need not be aligned, not even to the element size.
struct MatrixView {
  const std::byte* data = nullptr;
  WeightType type = WeightType::kF32;
  int64_t num_rows = 0;
  int64_t num_cols = 0;  // a multiple of the format's block_elements
};

// Bytes of a row. REQUIRES: num_cols is a multiple of the format's block_elements.
int64_t RowBytes(const MatrixView& w);

// Row `row` as f32, exactly: the plain way to read weights, for references.
// REQUIRES: row in [0, num_rows).
std::vector<float> WeightRow(const MatrixView& w, int64_t row);

}  // namespace kvick

#endif  // KVICK_OPS_MATRIX_VIEW_H_
