#include "kvick/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

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

}  // namespace

TensorView DenseF32(const float* data, std::initializer_list<int64_t> shape) {
  return Dense(reinterpret_cast<const std::byte*>(data), shape);
}

MutableTensorView DenseF32(float* data, std::initializer_list<int64_t> shape) {
  return Dense(reinterpret_cast<std::byte*>(data), shape);
}

Status CheckDense(std::string_view name, const TensorView& view,
                  std::initializer_list<int64_t> shape) {
  const TensorView wanted = DenseF32(static_cast<const float*>(nullptr), shape);
  if (view.dtype == wanted.dtype && view.rank == wanted.rank && view.shape == wanted.shape &&
      view.strides == wanted.strides && view.data != nullptr) {
    return {};
  }
  const auto rank = static_cast<size_t>(std::clamp(view.rank, 0, TensorView::kMaxRank));
  return Fail(ErrorCode::kInvalidArgument,
              "{} is {} [{}] with strides [{}], f32 [{}] without gaps is wanted", name,
              DTypeName(view.dtype), fmt::join(std::span(view.shape).first(rank), ", "),
              fmt::join(std::span(view.strides).first(rank), ", "), fmt::join(shape, ", "));
}

}  // namespace kvick
