#ifndef KVICK_TENSOR_H_
#define KVICK_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace kvick {

// Number types of tensors and caches. Weights may also be quantized (docs/formats.md).
enum class DType {
  kF32,
  kF16,   ///< IEEE binary16
  kBF16,  ///< the upper half of an f32
};

// "f32", "f16", "bf16".
std::string_view DTypeName(DType dtype);

// Bytes of one element: 4, 2 or 2.
int64_t DTypeBytes(DType dtype);

// A typed, strided view of memory, which it does not own.
//
// Units  shape and strides: elements, outermost dimension first; entries from `rank` on are unused
template <class Byte>
struct BasicTensorView {
  static constexpr int kMaxRank = 4;

  Byte* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> strides{};

  operator BasicTensorView<const std::byte>() const { return {data, dtype, rank, shape, strides}; }
};

using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

// A view of contiguous row-major f32 numbers. REQUIRES: 1 to 4 dimensions.
TensorView DenseF32(const float* data, std::initializer_list<int64_t> shape);
MutableTensorView DenseF32(float* data, std::initializer_list<int64_t> shape);

}  // namespace kvick

#endif  // KVICK_TENSOR_H_
