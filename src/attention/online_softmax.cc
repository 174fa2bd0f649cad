#include "attention/online_softmax.h"

#include <algorithm>

#include "base/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/online_softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h: these are compiled once per target too.
#include "base/exp-inl.h"
#include "base/f32x16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;

HWY_INLINE F32Vector MergeElements(F32Vector total, F32Vector keep, F32Vector chunk,
                                   F32Vector take) {
  return Fma(total, keep, hn::Mul(chunk, take));
}

void Merge(const OnlineSoftmax& total, const OnlineSoftmax& chunk, int64_t head_dim) {
  const float max = std::max(*total.max, *chunk.max);
  const F32Vector keep = ExpOfNonPositive(hn::Set(kTag, *total.max - max));
  const F32Vector take = ExpOfNonPositive(hn::Set(kTag, *chunk.max - max));
  const auto merge_one = [&](float& element, float next) {
    element = hn::GetLane(MergeElements(hn::Set(kTag, element), keep, hn::Set(kTag, next), take));
  };
  *total.max = max;
  merge_one(*total.sum, *chunk.sum);
  int64_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) {
    const F32Vector next = hn::LoadU(kTag, chunk.out + d);
    hn::StoreU(MergeElements(hn::LoadU(kTag, total.out + d), keep, next, take), kTag,
               total.out + d);
  }
  for (; d < head_dim; ++d) merge_one(total.out[d], chunk.out[d]);
}

void Divide(const OnlineSoftmax& total, int64_t head_dim, float* out) {
  const F32Vector sum = hn::Set(kTag, *total.sum);
  int64_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) {
    hn::StoreU(hn::Div(hn::LoadU(kTag, total.out + d), sum), kTag, out + d);
  }
  for (; d < head_dim; ++d) out[d] = total.out[d] / *total.sum;
}

constexpr OnlineSoftmaxKernel kOnlineSoftmaxKernel = {Merge, Divide};

const OnlineSoftmaxKernel& Kernel() { return kOnlineSoftmaxKernel; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

const OnlineSoftmaxKernel& OnlineSoftmaxKernelFor(Isa isa) { return KVICK_FOR_ISA(isa, Kernel)(); }

}  // namespace kvick
#endif  // HWY_ONCE
