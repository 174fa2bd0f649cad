// Linear with quantized weights for few tokens: weights are read where they lie, a row at a time
// for up to four tokens. Bound by memory where the processor has VPDPBUSD.

#include "ops/linear_quantized.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/highway_targets.h"
#include "ops/parallel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_quantized.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "base/f32x16-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/quantized_blocks-inl.h"
#include "ops/quantized_quads-inl.h"

#ifndef KVICK_OPS_LINEAR_QUANTIZED_SIZES
#define KVICK_OPS_LINEAR_QUANTIZED_SIZES

namespace kvick {
namespace {

constexpr int64_t kMinPanelTokens = 5;
constexpr int64_t kPanelTokens = 128;
constexpr int64_t kPanelRows = 16;

// The scratch memory of a thread.
struct QuantizedScratch {
  alignas(64) std::byte panel[kPanelRows][10 * 64];  // Lanes of each row
  alignas(64) float sums[kPanelRows][kPanelTokens][16];
};

}  // namespace
}  // namespace kvick
#endif

HWY_BEFORE_NAMESPACE();
namespace kvick::HWY_NAMESPACE {
namespace {

// How far ahead of its use a weight is prefetched.
constexpr int64_t kAheadBytes = 4096;

// The tail of a row: as many blocks as there are, the others zero.
template <class Block>
HWY_INLINE const uint8_t* WholeStep(const uint8_t* blocks, int64_t num_blocks, uint8_t* buffer) {
  constexpr QuantizedShape kShape = Block::kShape;
  if (num_blocks >= kShape.step_blocks()) return blocks;
  std::memset(buffer, 0, kShape.step_bytes());
  std::memcpy(buffer, blocks, static_cast<size_t>(num_blocks * kShape.block_bytes));
  return buffer;
}

HWY_INLINE void WriteOut(const QuantizedTask& task, int64_t row, int64_t token,
                         const F32x16& sums) {
  const LinearArgs& args = *task.args;
  const float sum = SumLanes(sums);
  float& y = args.y[token * args.w.num_rows + row];
  y = args.bias == nullptr ? sum : sum + args.bias[row];
}

// ---- Any processor: the integers of a step in memory.

template <class Block>
struct PlainStep {
  static constexpr QuantizedShape kShape = Block::kShape;
  alignas(64) int16_t codes[kShape.step_columns()];
  alignas(64) float scales[16];
  alignas(64) float minimums[16];

  HWY_INLINE void Load(const uint8_t* step) {
    constexpr int64_t kBlockSubs = kShape.block_columns / kShape.sub_columns;
    alignas(64) uint8_t bytes[kShape.block_columns];
    for (int64_t block = 0; block < kShape.step_blocks(); ++block) {
      Block::Codes(step + block * kShape.block_bytes, bytes);
      int16_t* to = codes + block * kShape.block_columns;
      for (int64_t i = 0; i < kShape.block_columns; ++i) to[i] = bytes[i];
      Block::Scales(step + block * kShape.block_bytes, scales + block * kBlockSubs,
                    minimums + block * kBlockSubs);
    }
  }

  HWY_INLINE void AddTo(const std::byte* x, F32x16& sums) const {
    alignas(64) int32_t ints[16];
    const auto* a = reinterpret_cast<const int16_t*>(x);
    for (int64_t sub = 0; sub < 16; ++sub) {
      int32_t sum = 0;
      for (int64_t i = 0; i < kShape.sub_columns; ++i) {
        sum += codes[sub * kShape.sub_columns + i] * a[sub * kShape.sub_columns + i];
      }
      ints[sub] = sum;
    }
    const hn::RebindToSigned<F32Tag> d32;
    const std::byte* extra = x + IntegerBytes(kShape);
    const auto* x_scales = reinterpret_cast<const float*>(extra);
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t i = part * kLanes;
      auto sub_sums = hn::Load(d32, ints + i);
      if constexpr (!kShape.has_minimums) {
        sub_sums =
            hn::Add(sub_sums, hn::Load(d32, reinterpret_cast<const int32_t*>(extra + 64) + i));
      }
      F32Vector& sum = sums.part[part];
      const F32Vector scale =
          hn::Mul(hn::Load(F32Tag(), scales + i), hn::Load(F32Tag(), x_scales + i));
      sum = Fma(hn::ConvertTo(F32Tag(), sub_sums), scale, sum);
      if constexpr (kShape.has_minimums) {
        const auto* x_sums = reinterpret_cast<const float*>(extra + 64);
        sum = Fma(hn::Load(F32Tag(), minimums + i), hn::Load(F32Tag(), x_sums + i), sum);
      }
    }
  }
};

template <class Block>
void RunPlainly(const QuantizedTask& task) {
  constexpr QuantizedShape kShape = Block::kShape;
  constexpr int64_t kBlockTokens = 16;
  const LinearArgs& args = *task.args;
  const int64_t num_blocks = args.w.num_cols / kShape.block_columns;
  uint8_t tail[kShape.step_bytes()];
  PlainStep<Block> step;
  for (int64_t token = 0; token < args.num_tokens; token += kBlockTokens) {
    const int64_t num_tokens = std::min(kBlockTokens, args.num_tokens - token);
    for (int64_t row = task.begin_row; row < task.end_row; ++row) {
      const auto* w = reinterpret_cast<const uint8_t*>(args.w.data) + row * task.row_bytes;
      F32x16 sums[kBlockTokens];
      for (F32x16& sum : sums) sum = ZeroF32x16();
      for (int64_t s = 0; s < task.x->num_steps; ++s) {
        const int64_t first = s * kShape.step_blocks();
        step.Load(WholeStep<Block>(w + s * kShape.step_bytes(), num_blocks - first, tail));
        for (int64_t t = 0; t < num_tokens; ++t) {
          step.AddTo(task.x->Row(token + t) + s * IntegerStepBytes(kShape), sums[t]);
        }
      }
      for (int64_t t = 0; t < num_tokens; ++t) WriteOut(task, row, token + t, sums[t]);
    }
  }
}

#if HWY_TARGET == HWY_AVX3

// ---- VPDPBUSD: each lane of the sum adds four products of a code and a signed byte. A statement
// of the assembler, so that the compiler need not be told of AVX512_VNNI for the rest of the
// target.

HWY_INLINE __m512i DotBytes(__m512i sum, __m512i codes, const std::byte* x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "m"(*reinterpret_cast<const __m512i*>(x)));
  return sum;
}

template <class Block>
HWY_INLINE void AddLanes(const Lanes<Block>& w, const std::byte* x, __m512& sums) {
  constexpr QuantizedShape kShape = Block::kShape;
  constexpr int kVectors = Lanes<Block>::kVectors;
  const std::byte* extra = x + IntegerBytes(kShape);
  __m512i high = _mm512_setzero_si512(), low = high;
  if constexpr (!kShape.has_minimums) low = _mm512_load_si512(extra + 64);
  for (int v = 0; v < kVectors; ++v) {
    high = DotBytes(high, w.codes[v], x + v * 64);
    low = DotBytes(low, w.codes[v], x + (kVectors + v) * 64);
  }
  const __m512i sub_sums = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
  const __m512 scales = _mm512_mul_ps(w.scales, _mm512_load_ps(extra));
  sums = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sub_sums), scales, sums);
  if constexpr (kShape.has_minimums) {
    sums = _mm512_fmadd_ps(w.minimums, _mm512_load_ps(extra + 64), sums);
  }
}

// From the order of lanes to ascending sub-blocks.
template <class Block>
HWY_INLINE F32x16 Ascending(__m512 sums) {
  static constexpr LaneOrder kPlaces = [] {
    LaneOrder places{};
    for (uint8_t i = 0; i < 16; ++i) places[Block::kShape.lanes()[i]] = i;
    return places;
  }();
  F32x16 ascending;
  ascending.part[0].raw =
      _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(Load128(kPlaces.data())), sums);
  return ascending;
}

template <class Block, int64_t kTokens>
void MultiplyRow(const QuantizedTask& task, int64_t row, int64_t first_token) {
  constexpr QuantizedShape kShape = Block::kShape;
  const LinearArgs& args = *task.args;
  const auto* w = reinterpret_cast<const uint8_t*>(args.w.data) + row * task.row_bytes;
  const std::byte* x[kTokens];
  __m512 sums[kTokens];
  for (int64_t t = 0; t < kTokens; ++t) {
    x[t] = task.x->Row(first_token + t);
    sums[t] = _mm512_setzero_ps();
  }
  const auto add_step = [&](const uint8_t* step) HWY_ATTR __attribute__((always_inline)) {
    const Lanes<Block> lanes(step);
    for (int64_t t = 0; t < kTokens; ++t) {
      AddLanes(lanes, x[t], sums[t]);
      x[t] += IntegerStepBytes(kShape);
    }
  };
  const int64_t num_blocks = args.w.num_cols / kShape.block_columns;
  const int64_t num_whole = num_blocks / kShape.step_blocks();
  for (int64_t s = 0; s < num_whole; ++s, w += kShape.step_bytes()) {
    for (int64_t line = 0; line < kShape.step_bytes(); line += 64) {
      hwy::Prefetch(w + kAheadBytes + line);
    }
    add_step(w);
  }
  if (num_whole < task.x->num_steps) {
    uint8_t tail[kShape.step_bytes()];
    add_step(WholeStep<Block>(w, num_blocks - num_whole * kShape.step_blocks(), tail));
  }
  for (int64_t t = 0; t < kTokens; ++t) {
    WriteOut(task, row, first_token + t, Ascending<Block>(sums[t]));
  }
}

template <class Block>
void MultiplyRowOf(int64_t num_tokens, const QuantizedTask& task, int64_t row, int64_t token) {
  switch (num_tokens) {
    case 4:
      return MultiplyRow<Block, 4>(task, row, token);
    case 3:
      return MultiplyRow<Block, 3>(task, row, token);
    case 2:
      return MultiplyRow<Block, 2>(task, row, token);
    default:
      return MultiplyRow<Block, 1>(task, row, token);
  }
}

template <class Block>
void RunInPlace(const QuantizedTask& task) {
  constexpr int64_t kMaxTokens = 4;
  const int64_t num_tokens = task.args->num_tokens;
  for (int64_t row = task.begin_row; row < task.end_row; ++row) {
    for (int64_t token = 0; token < num_tokens; token += kMaxTokens) {
      MultiplyRowOf<Block>(std::min(kMaxTokens, num_tokens - token), task, row, token);
    }
  }
}

// Many tokens: a step of some rows is unpacked into the L1 cache, once for up to 128 tokens, and
// meets them two rows at a time, which share the loads of activations.
template <class Block>
class Panels {
 public:
  explicit Panels(const QuantizedTask& task)
      : task_(task), scratch_(*reinterpret_cast<QuantizedScratch*>(task.scratch)) {}

  void Run() {
    for (int64_t token = 0; token < task_.args->num_tokens; token += kPanelTokens) {
      const int64_t end = std::min(token + kPanelTokens, task_.args->num_tokens);
      for (int64_t row = task_.begin_row; row < task_.end_row; row += kPanelRows) {
        Multiply(row, token, end);
      }
    }
  }

 private:
  static constexpr QuantizedShape kShape = Block::kShape;

  // Rows past the end of the task are the last one again, and their sums are not used.
  void Multiply(int64_t first_row, int64_t first_token, int64_t end_token) {
    constexpr int64_t kGroupTokens = 16;  // their activations of a step stay in L1
    std::memset(scratch_.sums, 0, sizeof(scratch_.sums));
    for (int64_t s = 0; s < task_.x->num_steps; ++s) {
      Unpack(first_row, s);
      for (int64_t token = first_token; token < end_token; token += kGroupTokens) {
        const int64_t end = std::min(token + kGroupTokens, end_token);
        for (int64_t r = 0; r < kPanelRows; r += 2) {
          MultiplyPair(r, s, {token, end, token - first_token});
        }
      }
    }
    for (int64_t t = first_token; t < end_token; ++t) {
      for (int64_t r = 0; r < std::min(kPanelRows, task_.end_row - first_row); ++r) {
        const __m512 sums = _mm512_load_ps(scratch_.sums[r][t - first_token]);
        WriteOut(task_, first_row + r, t, Ascending<Block>(sums));
      }
    }
  }

  void Unpack(int64_t first_row, int64_t s) {
    const int64_t num_blocks = task_.args->w.num_cols / kShape.block_columns;
    uint8_t tail[kShape.step_bytes()];
    for (int64_t r = 0; r < kPanelRows; ++r) {
      const int64_t row = std::min(first_row + r, task_.end_row - 1);
      const auto* w = reinterpret_cast<const uint8_t*>(task_.args->w.data) + row * task_.row_bytes +
                      s * kShape.step_bytes();
      const Lanes<Block> lanes(WholeStep<Block>(w, num_blocks - s * kShape.step_blocks(), tail));
      lanes.StoreTo(scratch_.panel[r]);
    }
  }

  struct Tokens {
    int64_t begin, end;
    int64_t first_sum;
  };

  void MultiplyPair(int64_t r, int64_t s, const Tokens& tokens) {
    const auto a = Lanes<Block>::LoadFrom(scratch_.panel[r]);
    const auto b = Lanes<Block>::LoadFrom(scratch_.panel[r + 1]);
    const int64_t stride = task_.x->row_stride;
    const std::byte* x = task_.x->Row(tokens.begin) + s * IntegerStepBytes(kShape);
    float* sums_a = scratch_.sums[r][tokens.first_sum];
    float* sums_b = scratch_.sums[r + 1][tokens.first_sum];
    for (int64_t t = tokens.begin; t < tokens.end; ++t, x += stride, sums_a += 16, sums_b += 16) {
      __m512 sum_a = _mm512_load_ps(sums_a), sum_b = _mm512_load_ps(sums_b);
      AddLanes(a, x, sum_a);
      AddLanes(b, x, sum_b);
      _mm512_store_ps(sums_a, sum_a);
      _mm512_store_ps(sums_b, sum_b);
    }
  }

  const QuantizedTask& task_;
  QuantizedScratch& scratch_;
};

#endif  // HWY_AVX3

template <class Block>
void Run(const QuantizedTask& task) {
#if HWY_TARGET == HWY_AVX3
  if (task.x->layout == IntegerLayout::kLanes) {
    if (task.args->num_tokens < kMinPanelTokens) return RunInPlace<Block>(task);
    return Panels<Block>(task).Run();
  }
#endif
  RunPlainly<Block>(task);
}

QuantizedShape ShapeOfBlock(WeightType type) {
  QuantizedShape shape;
  WithBlock(type, [&](auto block) HWY_ATTR { shape = decltype(block)::kShape; });
  return shape;
}

void RunTask(const QuantizedTask& task) {
  WithBlock(task.args->w.type, [&](auto block) HWY_ATTR { Run<decltype(block)>(task); });
}

}  // namespace
}  // namespace kvick::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvick {

void MultiplyQuantized(Isa isa, const QuantizedTask& task) { KVICK_FOR_ISA(isa, RunTask)(task); }

QuantizedShape ShapeOf(WeightType type) { return N_SCALAR::ShapeOfBlock(type); }

int64_t QuantizedRowsPerTask(const LinearArgs& args) {
  constexpr int64_t kManyTokens = 2 * kPanelRows;
  return args.num_tokens < kMinPanelTokens ? WeightRowsPerTask(RowBytes(args.w), 4) : kManyTokens;
}

int64_t QuantizedScratchBytes() { return sizeof(QuantizedScratch); }

}  // namespace kvick
#endif  // HWY_ONCE
