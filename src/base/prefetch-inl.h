// Prefetching into the L2 cache. Compiled once per target.

#if defined(KVICK_BASE_PREFETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_PREFETCH_INL_H_
#undef KVICK_BASE_PREFETCH_INL_H_
#else
#define KVICK_BASE_PREFETCH_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// Highway's Prefetch fetches into L1.
HWY_INLINE void PrefetchToL2(const std::byte* data) {
  __builtin_prefetch(data, /*rw=*/0, /*locality=*/2);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
