#ifndef KVICK_FORMATS_TENSOR_INFO_H_
#define KVICK_FORMATS_TENSOR_INFO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/status.h"
#include "quant/weight_format.h"

namespace kvick {

// A tensor where it lies in a file: row-major, without gaps, its bytes inside the file.
struct TensorInfo {
  std::string name;                 // as the file has it: any bytes
  std::string_view type_name;       // the format's own: "F32", "Q4_K"
  const WeightFormat* format;       // nullptr: well-formed, but not one that kvick reads
  std::vector<int64_t> shape;       // elements, outermost dimension first; each >= 0
  const std::byte* data = nullptr;  // not necessarily aligned to the element size
  int64_t num_bytes = 0;
};

// "[512, 64]"; of a long shape its beginning.
std::string ShapeText(std::span<const int64_t> shape);

// The product of the sizes, 0 where one of them is 0, nullopt where it does not fit 63 bits.
std::optional<int64_t> NumElements(std::span<const int64_t> shape);

// The tensors of a file or of several, in file order, found by name in O(log n).
class TensorTable {
 public:
  // `source` names the file in messages.
  // Errors: corrupt: two tensors of one name, or two that share bytes.
  static Result<TensorTable> Create(std::string_view source, std::vector<TensorInfo> tensors);

  TensorTable() = default;

  const std::vector<TensorInfo>& all() const { return tensors_; }
  // nullptr where there is none.
  const TensorInfo* Find(std::string_view name) const;

 private:
  explicit TensorTable(std::vector<TensorInfo> tensors);

  std::vector<TensorInfo> tensors_;
  std::vector<size_t> by_name_;  // indices into tensors_
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TENSOR_INFO_H_
