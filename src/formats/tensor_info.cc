#include "formats/tensor_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

Status CheckNoSharedBytes(std::string_view source, const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> by_place;
  by_place.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (tensor.num_bytes > 0) by_place.push_back(&tensor);
  }
  std::sort(by_place.begin(), by_place.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::less<>()(a->data, b->data);
  });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const TensorInfo& before = *by_place[i - 1];
    const TensorInfo& after = *by_place[i];
    if (std::less<>()(after.data, before.data + before.num_bytes)) {
      return Fail(ErrorCode::kCorrupt, "{}: tensors {} and {} overlap", source, Quoted(before.name),
                  Quoted(after.name));
    }
  }
  return {};
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  constexpr size_t kMaxShown = 8;
  if (shape.size() <= kMaxShown) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} sizes]", fmt::join(shape.first(kMaxShown), ", "), shape.size());
}

std::optional<int64_t> NumElements(std::span<const int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::optional<int64_t> num = 1;
  for (const int64_t size : shape) {
    if (num) num = CheckedProduct({*num, size});
  }
  return num;
}

TensorTable::TensorTable(std::vector<TensorInfo> tensors)
    : tensors_(std::move(tensors)), by_name_(tensors_.size()) {
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [this](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
}

Result<TensorTable> TensorTable::Create(std::string_view source, std::vector<TensorInfo> tensors) {
  TensorTable table(std::move(tensors));
  const auto twin = std::adjacent_find(
      table.by_name_.begin(), table.by_name_.end(),
      [&](size_t a, size_t b) { return table.tensors_[a].name == table.tensors_[b].name; });
  if (twin != table.by_name_.end()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected one tensor {}, got two", source,
                Quoted(table.tensors_[*twin].name));
  }
  KVICK_RETURN_IF_ERROR(CheckNoSharedBytes(source, table.tensors_));
  return table;
}

const TensorInfo* TensorTable::Find(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](size_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  if (place == by_name_.end() || tensors_[*place].name != name) return nullptr;
  return &tensors_[*place];
}

}  // namespace kvick
