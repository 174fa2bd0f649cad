#include "kvick/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/check.h"
#include "base/tensor_check.h"

namespace kvick {
namespace {

template <class Byte>
BasicTensorView<Byte> Dense(Byte* data, std::initializer_list<int64_t> shape) {
  constexpr size_t kMaxRank = BasicTensorView<Byte>::kMaxRank;
  KVICK_CHECK(shape.size() >= 1 && shape.size() <= kMaxRank);
  BasicTensorView<Byte> view;
  view.data = data;
  view.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  int64_t stride = 1;
  for (int i = view.rank; i-- > 0; stride *= view.shape[i]) view.strides[i] = stride;
  return view;
}

std::string Joined(const std::array<int64_t, TensorView::kMaxRank>& numbers, int rank) {
  const auto num = static_cast<size_t>(std::clamp(rank, 0, TensorView::kMaxRank));
  return fmt::format("{}", fmt::join(std::span(numbers).first(num), ", "));
}

}  // namespace

TensorView DenseF32(const float* data, std::initializer_list<int64_t> shape) {
  return Dense(reinterpret_cast<const std::byte*>(data), shape);
}

MutableTensorView DenseF32(float* data, std::initializer_list<int64_t> shape) {
  return Dense(reinterpret_cast<std::byte*>(data), shape);
}

Status CheckShape(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape) {
  const bool is_shape = view.dtype == DType::kF32 && view.rank == static_cast<int>(shape.size()) &&
                        std::equal(shape.begin(), shape.end(), view.shape.begin());
  if (!is_shape) {
    return Fail(ErrorCode::kInvalidArgument, "{}: expected f32 [{}], got {} [{}]", name,
                fmt::join(shape, ", "), DTypeName(view.dtype), Joined(view.shape, view.rank));
  }
  if (view.data == nullptr || view.strides[view.rank - 1] != 1) {
    return Fail(ErrorCode::kInvalidArgument,
                "{}: expected data with an innermost stride of 1, got {} with strides [{}]", name,
                view.data == nullptr ? "null" : "data", Joined(view.strides, view.rank));
  }
  return {};
}

Status CheckDense(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape) {
  KVICK_RETURN_IF_ERROR(CheckShape(name, view, shape));
  const TensorView dense = DenseF32(static_cast<const float*>(nullptr), shape);
  if (std::equal(dense.strides.begin(), dense.strides.begin() + dense.rank, view.strides.begin())) {
    return {};
  }
  return Fail(ErrorCode::kInvalidArgument, "{}: expected strides [{}] (no gaps), got [{}]", name,
              Joined(dense.strides, dense.rank), Joined(view.strides, view.rank));
}

}  // namespace kvick
