#include "ops/packed_activations.h"

#include <algorithm>
#include <cstring>

#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/packed_activations.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/simd_store-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

constexpr F32Tag kTag;
constexpr int64_t kMaxStepColumns = 32;

// One part of the lanes of a step.
void StorePair(const F32Pair& rounded, ActivationFormat format, int64_t part, std::byte* out) {
  const hn::RebindToUnsigned<F32Tag> d32;
  auto* lanes = reinterpret_cast<float*>(out) + part * kLanes;
  if (format == ActivationFormat::kF32Pairs) {
    hn::Store(rounded.first, kTag, lanes);
    hn::Store(rounded.second, kTag, lanes + 16);
    return;
  }
  const auto odd = hn::BitCast(d32, rounded.first), even = hn::BitCast(d32, rounded.second);
  hn::Store(hn::BitCast(kTag, hn::Or(odd, hn::ShiftRight<16>(even))), kTag, lanes);
}

// 32 columns.
void PackPairs(const PackedActivations& packed, const float* x, std::byte* out) {
  for (int64_t part = 0; part < kParts; ++part) {
    F32Pair rest;
    hn::LoadInterleaved2(kTag, x + 2 * part * kLanes, rest.second, rest.first);
    for (int term = 0; term < packed.num_terms; ++term) {
      const F32Pair rounded{RoundToBF16(rest.first), RoundToBF16(rest.second)};
      StorePair(rounded, packed.format, part, out + term * StepBytes(packed.format));
      rest = {hn::Sub(rest.first, rounded.first), hn::Sub(rest.second, rounded.second)};  // exact
    }
  }
}

void PackRow(const PackedActivations& packed, const float* x, int64_t num_cols, std::byte* out) {
  const int64_t step_cols = StepColumns(packed.format);
  const int64_t step_bytes = packed.num_terms * StepBytes(packed.format);
  for (int64_t col = 0; col < num_cols; col += step_cols, out += step_bytes) {
    const int64_t num = std::min(step_cols, num_cols - col);
    HWY_ALIGN float tail[kMaxStepColumns] = {};
    const float* step = x + col;
    if (num < step_cols) {
      std::memcpy(tail, step, static_cast<size_t>(num) * sizeof(float));
      step = tail;
    }
    if (packed.format == ActivationFormat::kF32) {
      std::memcpy(out, step, static_cast<size_t>(step_bytes));
    } else {
      PackPairs(packed, step, out);
    }
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

PackedActivations PackedActivations::For(ActivationFormat format, int num_terms, int64_t num_cols) {
  constexpr int64_t kLineBytes = 64;
  PackedActivations packed{format, num_terms, CeilDiv(num_cols, StepColumns(format))};
  const int64_t num_lines = packed.num_steps * num_terms * StepBytes(format) / kLineBytes;
  packed.row_stride = (num_lines | 1) * kLineBytes;
  return packed;
}

void PackActivations(const Exec& exec, const LinearArgs& args, const PackedActivations& packed) {
  const auto pack_row = KVICK_FOR_ISA(exec.isa, PackRow);
  const int64_t num_cols = args.w.num_cols;
  ParallelRows(exec, args.num_tokens, num_cols, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      pack_row(packed, args.x + t * num_cols, num_cols, packed.data + t * packed.row_stride);
    }
  });
}

}  // namespace kvick
#endif  // HWY_ONCE
