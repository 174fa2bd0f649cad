#include "ops/matrix_view.h"

#include "base/check.h"
#include "base/dtype.h"

namespace kvick {

std::vector<float> WeightRow(const MatrixView& w, int64_t row) {
  KVICK_CHECK(row >= 0 && row < w.num_rows);
  const int64_t row_bytes = DTypeRowBytes(w.dtype, w.num_cols).value();
  std::vector<float> values(static_cast<size_t>(w.num_cols));
  ConvertToF32(w.dtype, w.data + row * row_bytes, w.num_cols, values.data());
  return values;
}

}  // namespace kvick
