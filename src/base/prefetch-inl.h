// Prefetching into the L2 cache. Compiled once per target.

#if defined(KVICK_BASE_PREFETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_BASE_PREFETCH_INL_H_
#undef KVICK_BASE_PREFETCH_INL_H_
#else
#define KVICK_BASE_PREFETCH_INL_H_
#endif

#include <cstddef>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

// Highway's Prefetch fetches into L1.
HWY_INLINE void PrefetchToL2(const std::byte* data) {
#if HWY_ARCH_X86
  _mm_prefetch(reinterpret_cast<const char*>(data), _MM_HINT_T1);
#else
  hwy::Prefetch(data);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
