#include "ops/add.h"

#include <cstdint>

#include "base/check.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/contrib/algo/transform-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void AddElements(float* x, const float* y, int64_t n) {
  hn::Transform1(hn::ScalableTag<float>(), x, static_cast<size_t>(n), y,
                 [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void AddInPlace(const Exec& exec, std::span<float> x, std::span<const float> y) {
  KVICK_CHECK(x.size() == y.size());
  const auto add = KVICK_FOR_ISA(exec.isa, AddElements);
  ParallelRows(exec, static_cast<int64_t>(x.size()), 1, [&](int64_t begin, int64_t end) {
    add(x.data() + begin, y.data() + begin, end - begin);
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
