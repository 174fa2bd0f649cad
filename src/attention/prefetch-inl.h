// Asking for keys and values before they are needed. Compiled once per target.

#if defined(KVICK_ATTENTION_PREFETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_ATTENTION_PREFETCH_INL_H_
#undef KVICK_ATTENTION_PREFETCH_INL_H_
#else
#define KVICK_ATTENTION_PREFETCH_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/chunk_rows.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

inline constexpr int64_t kLineBytes = 64;

// Highway's Prefetch asks for the first-level cache.
HWY_INLINE void PrefetchToL2(const std::byte* data) {
#if HWY_ARCH_X86
  _mm_prefetch(reinterpret_cast<const char*>(data), _MM_HINT_T1);
#else
  hwy::Prefetch(data);
#endif
}

// Bytes [offset, offset + num_bytes) of what is ahead, by steps of a line: pieces shorter than a
// line ask for it more than once. Asking once, by rounding the offset up, cost more than it saved:
// prefill on avx512 fell from 47 % to 30 % of the multipliers' limit, decode from 86 % to 73 %.
//
// Two distances, for a core has 16 fill buffers, too few to cover the time that memory takes: what
// is far goes into the second-level cache, where the hardware reads on by itself. With neither,
// keys and values of 16,384 tokens came at 48 % of the bandwidth, with one at 65 %, with both at
// 85 % (docs/kernels.md).
HWY_INLINE void Prefetch(const AheadRows& ahead, int64_t offset, int64_t num_bytes) {
  for (int64_t i = offset; i < offset + num_bytes; i += kLineBytes) {
    hwy::Prefetch(ahead.near + i);
    PrefetchToL2(ahead.far + i);
  }
}

// For pairs of vectors that fill half a line: the even ones ask near, the odd ones far, so that a
// line is asked for once at each distance. Twice each: AVX2 with bf16 at 65 % instead of 68 %.
//
// A tile of values takes half a line of each slot: asking there for the lines in the order of their
// addresses, as if rows lay side by side, is for the hardware to follow: 70 %.
HWY_INLINE void PrefetchHalf(const AheadRows& ahead, int64_t offset, int64_t pair) {
  if (pair % 2 == 0) {
    hwy::Prefetch(ahead.near + offset);
  } else {
    PrefetchToL2(ahead.far + offset);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
