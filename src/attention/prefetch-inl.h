// Prefetching of keys and values. Compiled once per target.

#if defined(KVICK_ATTENTION_PREFETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_ATTENTION_PREFETCH_INL_H_
#undef KVICK_ATTENTION_PREFETCH_INL_H_
#else
#define KVICK_ATTENTION_PREFETCH_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "attention/chunk_rows.h"
#include "base/f32x16-inl.h"
#include "base/prefetch-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

inline constexpr int64_t kLineBytes = 64;

// Prefetches bytes [offset, offset + num_bytes) of the rows ahead, in steps of a cache line: pieces
// shorter than a line prefetch it more than once. Prefetching it once, by rounding the offset up,
// cost more than it saved: prefill on avx512 fell from 47 % to 30 % of the FMA limit, decode from
// 86 % to 73 % of the bandwidth.
//
// There are two distances because a core has 16 fill buffers, too few for the latency of memory:
// the far rows go into L2, where the hardware prefetcher goes on by itself. Keys and values of
// 16,384 tokens were read at 48 % of the bandwidth with neither distance, at 65 % with one, at 85 %
// with both (docs/kernels.md).
HWY_INLINE void Prefetch(const AheadRows& ahead, int64_t offset, int64_t num_bytes) {
  for (int64_t i = offset; i < offset + num_bytes; i += kLineBytes) {
    hwy::Prefetch(ahead.near + i);
    PrefetchToL2(ahead.far + i);
  }
}

// For one part of the lanes of a pair of kBytes. Where pairs are read in parts, the first
// prefetches near and the second far, so that each line is prefetched once at each distance. Twice
// each gave 65 % instead of 68 % (AVX2, bf16).
//
// A tile of values reads one part of the pairs of each slot. There, lines are prefetched in the
// order of their addresses, as if rows were adjacent, so that the hardware prefetcher can follow:
// 70 %.
template <int64_t kBytes>
HWY_INLINE void PrefetchPart(const AheadRows& ahead, int64_t offset, int64_t part) {
  for (int64_t i = 0; i < kBytes; i += kLineBytes) {
    if (part == 0) hwy::Prefetch(ahead.near + offset + i);
    if (part == 1 || kParts == 1) PrefetchToL2(ahead.far + offset + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
