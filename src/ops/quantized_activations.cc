#include "ops/quantized_activations.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized_activations.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// Plain loops of fixed lengths, which compilers turn into vectors.

constexpr int64_t kBlock = 32;
constexpr int64_t kMaxStepColumns = 512;

// Returns the scale.
float QuantizeBlock(const float* x, int16_t* a) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr float kLargest = 32639, kSmallest = 0x1p-64f;
  uint32_t amax_bits = 0;
  for (int64_t i = 0; i < kBlock; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    amax_bits = std::max(amax_bits, bits & 0x7fffffffu);
  }
  const float amax = std::bit_cast<float>(amax_bits);
  if (amax_bits >= kInfinity || amax < kSmallest) {
    std::memset(a, 0, kBlock * sizeof(*a));
    return amax_bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
  }
  // A sum with it has no bits for fractions, and rounds them to nearest even.
  constexpr float kRound = 0x1.8p23f;
  const float inverse = kLargest / amax;
  for (int64_t i = 0; i < kBlock; ++i) {
    const float rounded = x[i] * inverse + kRound;
    int32_t bits;
    std::memcpy(&bits, &rounded, sizeof(bits));
    a[i] = static_cast<int16_t>(bits - std::bit_cast<int32_t>(kRound));
  }
  return amax / kLargest;
}

// 256 high + low = a.
void SplitBytes(const int16_t* a, int64_t num, int8_t* high, int8_t* low) {
  for (int64_t i = 0; i < num; ++i) {
    low[i] = static_cast<int8_t>(a[i] & 0xff);
    high[i] = static_cast<int8_t>((a[i] + 128) >> 8);
  }
}

void StoreIntegers(const QuantizedActivations& packed, const int16_t* a, std::byte* out) {
  const QuantizedShape& shape = packed.shape;
  auto* bytes = reinterpret_cast<int8_t*>(out);
  if (packed.layout == IntegerLayout::kInt16) {
    std::memcpy(out, a, static_cast<size_t>(IntegerBytes(shape)));
  } else {
    alignas(64) int8_t high[kMaxStepColumns], low[kMaxStepColumns];
    SplitBytes(a, shape.step_columns(), high, low);
    const LaneOrder lanes = shape.lanes();
    for (int64_t v = 0; v < shape.sub_columns / 4; ++v) {
      for (int64_t lane = 0; lane < 16; ++lane, bytes += 4) {
        const int64_t from =
            lanes[static_cast<size_t>(lane)] * shape.sub_columns + shape.lane_column(v, lane);
        std::memcpy(bytes, high + from, 4);
        std::memcpy(bytes + shape.step_columns(), low + from, 4);
      }
    }
  }
}

// `places[i]` is the sub-block whose sums stand at i.
void StoreSums(const QuantizedShape& shape, const int16_t* a, const float* scales,
               const LaneOrder& places, std::byte* out) {
  for (size_t i = 0; i < 16; ++i, out += 4) {
    const int64_t sub = places[i];
    int32_t sum = 0;
    for (int64_t k = 0; k < shape.sub_columns; ++k) sum += a[sub * shape.sub_columns + k];
    const float sum_f32 = scales[sub] * static_cast<float>(sum);
    const int32_t sum_offsets = -shape.offset * sum;
    std::memcpy(out, scales + sub, 4);
    shape.has_minimums ? std::memcpy(out + 64, &sum_f32, 4)
                       : std::memcpy(out + 64, &sum_offsets, 4);
  }
}

void PackRow(const QuantizedActivations& packed, const float* x, int64_t num_cols, std::byte* out) {
  const QuantizedShape& shape = packed.shape;
  const LaneOrder places = packed.layout == IntegerLayout::kLanes ? shape.lanes() : kAscending;
  for (int64_t step = 0; step < packed.num_steps; ++step, out += IntegerStepBytes(shape)) {
    alignas(64) int16_t a[kMaxStepColumns] = {};
    alignas(64) float scales[16] = {};
    const int64_t first = step * shape.step_columns();
    const int64_t num_blocks = std::min(shape.step_columns(), num_cols - first) / kBlock;
    for (int64_t block = 0; block < num_blocks; ++block) {
      const float scale = QuantizeBlock(x + first + block * kBlock, a + block * kBlock);
      const int64_t num_subs = kBlock / shape.sub_columns;
      for (int64_t i = 0; i < num_subs; ++i) scales[block * num_subs + i] = scale;
    }
    StoreIntegers(packed, a, out);
    StoreSums(shape, a, scales, places, out + IntegerBytes(shape));
  }
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

QuantizedActivations QuantizedActivations::For(IntegerLayout layout, const QuantizedShape& shape,
                                               int64_t num_cols) {
  constexpr int64_t kLineBytes = 64;
  QuantizedActivations packed{layout, shape, CeilDiv(num_cols, shape.step_columns())};
  const int64_t num_lines = packed.num_steps * IntegerStepBytes(shape) / kLineBytes;
  packed.row_stride = (num_lines | 1) * kLineBytes;
  return packed;
}

void QuantizeActivations(const Exec& exec, const LinearArgs& args,
                         const QuantizedActivations& packed) {
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
