#include "ops/matrix_view.h"

#include "base/check.h"

namespace kvick {

int64_t RowBytes(const MatrixView& w) { return WeightBytes(w.type, w.num_cols).value(); }

std::vector<float> WeightRow(const MatrixView& w, int64_t row) {
  KVICK_CHECK(row >= 0 && row < w.num_rows);
  std::vector<float> values(static_cast<size_t>(w.num_cols));
  DecodeWeights(w.type, w.data + row * RowBytes(w), w.num_cols, values.data());
  return values;
}

}  // namespace kvick
