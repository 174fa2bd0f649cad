// Linear with quantized weights by VPDPBUSD of AVX-512: each 32-bit lane of a sum adds four
// products of a code and a signed byte.

#if defined(KVICK_OPS_QUANTIZED_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVICK_OPS_QUANTIZED_DOTS_INL_H_
#undef KVICK_OPS_QUANTIZED_DOTS_INL_H_
#else
#define KVICK_OPS_QUANTIZED_DOTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "base/prefetch-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear_quantized.h"
#include "ops/quantized_lanes_256-inl.h"
#include "ops/quantized_lanes_32-inl.h"
#include "ops/quantized_rows-inl.h"

#ifndef KVICK_OPS_QUANTIZED_DOTS_SIZES
#define KVICK_OPS_QUANTIZED_DOTS_SIZES

namespace kvick {

// Outputs whose sums are in registers: two rows share the loads of activations, four tokens those
// of weights.
inline constexpr int64_t kTileRows = 2, kTileTokens = 4;

// What is unpacked at a time, for up to 128 tokens: it stays in the L2 cache, while the activations
// of a tile stay in L1.
inline constexpr int64_t kLanesBytes = 10 * 64;  // of the largest Lanes
inline constexpr int64_t kPanelRows = 32, kPanelSteps = 4, kPanelTokens = 128;

// The scratch memory of a thread.
struct QuantizedScratch {
  alignas(64) std::byte panel[kPanelRows][kPanelSteps][kLanesBytes];
  alignas(64) float sums[kPanelRows][kPanelTokens][16];
};

}  // namespace kvick
#endif

HWY_BEFORE_NAMESPACE();
namespace kvick {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// A statement of the assembler, so that the compiler need not be told of AVX512_VNNI for the rest
// of the target.
HWY_INLINE __m512i DotBytes(__m512i sum, __m512i codes, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(x));
  return sum;
}

// The dot products of one sub-block a lane, with the high and the low bytes of activations.
struct LaneDots {
  __m512i high, low;

  // `extra`: what follows the integers of a step.
  template <QuantizedShape kShape>
  HWY_INLINE void Start(const std::byte* extra) {
    high = low = _mm512_setzero_si512();
    if constexpr (!kShape.has_minimums) low = _mm512_load_si512(extra + 64);
  }

  HWY_INLINE void Add(__m512i codes, __m512i x_high, __m512i x_low) {
    high = DotBytes(high, codes, x_high);
    low = DotBytes(low, codes, x_low);
  }

  template <QuantizedShape kShape>
  HWY_INLINE void ScaleInto(__m512& sums, __m512 scales, __m512 minimums,
                            const std::byte* extra) const {
    const __m512i sub_sums = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
    sums = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sub_sums),
                           _mm512_mul_ps(scales, _mm512_load_ps(extra)), sums);
    if constexpr (kShape.has_minimums) {
      sums = _mm512_fmadd_ps(minimums, _mm512_load_ps(extra + 64), sums);
    }
  }
};

// From the order of lanes to ascending sub-blocks.
template <QuantizedShape kShape>
HWY_INLINE F32x16 Ascending(__m512 sums) {
  static constexpr LaneOrder kPlaces = [] {
    LaneOrder places{};
    for (uint8_t i = 0; i < 16; ++i) places[kShape.lanes()[i]] = i;
    return places;
  }();
  F32x16 ascending;
  ascending.part[0].raw =
      _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(Load128(kPlaces.data())), sums);
  return ascending;
}

// ---- Few tokens: weights are unpacked into registers. A panel of two rows took half as long again
// with four tokens: its unpacking waits for memory, and its tiles let memory rest.

template <class Block, int64_t kTokens>
HWY_INLINE void AddStep(const uint8_t* step, const std::byte* const (&x)[kTokens],
                        __m512 (&sums)[kTokens]) {
  constexpr QuantizedShape kShape = Block::kShape;
  constexpr int kVectors = Lanes<Block>::kVectors;
  const Lanes<Block> w(step);
  LaneDots dots[kTokens];
  for (int64_t t = 0; t < kTokens; ++t) dots[t].template Start<kShape>(x[t] + IntegerBytes(kShape));
  for (int v = 0; v < kVectors; ++v) {
    for (int64_t t = 0; t < kTokens; ++t) {
      dots[t].Add(w.codes[v], _mm512_load_si512(x[t] + v * 64),
                  _mm512_load_si512(x[t] + (kVectors + v) * 64));
    }
  }
  for (int64_t t = 0; t < kTokens; ++t) {
    dots[t].template ScaleInto<kShape>(sums[t], w.scales, w.minimums, x[t] + IntegerBytes(kShape));
  }
}

// Rows [row, row + kRows) side by side. One token reads memory faster in four places (Q4_K: 82 to
// 86 % of the bandwidth, one row 77 to 79 %); two tokens on two rows were slower (58 %, one row 68
// %).
template <class Block, int64_t kRows, int64_t kTokens>
void MultiplyRows(const QuantizedTask& task, int64_t row) {
  constexpr QuantizedShape kShape = Block::kShape;
  const int64_t ahead_bytes = kRows == 1 ? 4096 : kRows * task.row_bytes;  // to be prefetched
  const auto* w = reinterpret_cast<const uint8_t*>(task.args->w.data) + row * task.row_bytes;
  const std::byte* x[kTokens];
  __m512 sums[kRows][kTokens];
  for (int64_t t = 0; t < kTokens; ++t) {
    x[t] = task.x->Row(t);
    for (int64_t r = 0; r < kRows; ++r) sums[r][t] = _mm512_setzero_ps();
  }
  const int64_t num_blocks = task.args->w.num_cols / kShape.block_columns;
  const int64_t num_whole = num_blocks / kShape.step_blocks();
  for (int64_t s = 0; s < num_whole; ++s) {
    for (int64_t r = 0; r < kRows; ++r) {
      const uint8_t* step = w + r * task.row_bytes;
      for (int64_t line = 0; line < kShape.step_bytes(); line += 64) {
        hwy::Prefetch(step + ahead_bytes + line);
      }
      AddStep<Block, kTokens>(step, x, sums[r]);
    }
    w += kShape.step_bytes();
    for (const std::byte*& x_t : x) x_t += IntegerStepBytes(kShape);
  }
  if (num_whole < task.x->num_steps) {
    const int64_t num_left = num_blocks - num_whole * kShape.step_blocks();
    uint8_t tail[kShape.step_bytes()];
    for (int64_t r = 0; r < kRows; ++r) {
      AddStep<Block, kTokens>(WholeStep<Block>(w + r * task.row_bytes, num_left, tail), x, sums[r]);
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t t = 0; t < kTokens; ++t) {
      WriteOut(task, row + r, t, Ascending<kShape>(sums[r][t]));
    }
  }
}

template <class Block, int64_t kTokens>
void RunInPlace(const QuantizedTask& task) {
  constexpr int64_t kRows = kTokens == 1 ? 4 : 1;
  int64_t row = task.begin_row;
  for (; row + kRows <= task.end_row; row += kRows) MultiplyRows<Block, kRows, kTokens>(task, row);
  for (; row < task.end_row; ++row) MultiplyRows<Block, 1, kTokens>(task, row);
}

// ---- More tokens: weights are unpacked into a panel, from where tiles read them.

// kTileRows rows of the panel times up to kTileTokens tokens.
struct QuantizedTile {
  const std::byte* w;     // Lanes of the first row; those of a row lie one after the other
  const std::byte* x;     // of the first token
  int64_t x_stride;       // bytes from one token to the next
  float* sums;            // of the first row and token: 16 of each token, then of the next
  int64_t num_steps;      // at most kPanelSteps
  bool is_first = false;  // its sums begin at zero
};

template <QuantizedShape kShape, int64_t kTokens>
void MultiplyTile(const QuantizedTile& tile) {
  constexpr int64_t kVectors = kShape.sub_columns / 4;
  constexpr int64_t kRowBytes = sizeof(QuantizedScratch::panel[0]);
  constexpr int64_t kStepBytes = sizeof(QuantizedScratch::panel[0][0]);
  constexpr int64_t kRowSums = kPanelTokens * 16;
  __m512 sums[kTileRows][kTokens];
  for (int64_t r = 0; r < kTileRows; ++r) {
    for (int64_t t = 0; t < kTokens; ++t) {
      sums[r][t] =
          tile.is_first ? _mm512_setzero_ps() : _mm512_load_ps(tile.sums + r * kRowSums + t * 16);
    }
  }
  const std::byte* w = tile.w;
  const std::byte* x = tile.x;
  for (int64_t s = 0; s < tile.num_steps; ++s) {
    LaneDots dots[kTileRows][kTokens];
    const std::byte* extra = x + IntegerBytes(kShape);
    for (auto& row : dots) {
      for (int64_t t = 0; t < kTokens; ++t)
        row[t].template Start<kShape>(extra + t * tile.x_stride);
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      const __m512i codes[kTileRows] = {_mm512_load_si512(w + v * 64),
                                        _mm512_load_si512(w + kRowBytes + v * 64)};
      for (int64_t t = 0; t < kTokens; ++t) {
        const std::byte* x_t = x + t * tile.x_stride + v * 64;
        __m512i high = _mm512_load_si512(x_t), low = _mm512_load_si512(x_t + kVectors * 64);
        asm("" : "+v"(high), "+v"(low));  // loaded once, not once for each row
        for (int64_t r = 0; r < kTileRows; ++r) dots[r][t].Add(codes[r], high, low);
      }
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      const std::byte* scales = w + r * kRowBytes + kVectors * 64;
      for (int64_t t = 0; t < kTokens; ++t) {
        dots[r][t].template ScaleInto<kShape>(sums[r][t], _mm512_load_ps(scales),
                                              _mm512_load_ps(scales + 64),
                                              extra + t * tile.x_stride);
      }
    }
    w += kStepBytes;
    x += IntegerStepBytes(kShape);
  }
  for (int64_t r = 0; r < kTileRows; ++r) {
    for (int64_t t = 0; t < kTokens; ++t) {
      _mm512_store_ps(tile.sums + r * kRowSums + t * 16, sums[r][t]);
    }
  }
}

template <QuantizedShape kShape>
void MultiplyTileOf(int64_t num_tokens, const QuantizedTile& tile) {
  switch (num_tokens) {
    case 1:
      return MultiplyTile<kShape, 1>(tile);
    case 2:
      return MultiplyTile<kShape, 2>(tile);
    case 3:
      return MultiplyTile<kShape, 3>(tile);
    default:
      return MultiplyTile<kShape, kTileTokens>(tile);
  }
}

template <class Block>
class Panels {
 public:
  explicit Panels(const QuantizedTask& task)
      : task_(task), scratch_(*reinterpret_cast<QuantizedScratch*>(task.scratch)) {}

  void Run() {
    const int64_t num_tokens = task_.args->num_tokens;
    for (int64_t token = 0; token < num_tokens; token += kPanelTokens) {
      for (int64_t row = task_.begin_row; row < task_.end_row; row += kPanelRows) {
        Multiply({row, std::min(row + kPanelRows, task_.end_row)},
                 {token, std::min(token + kPanelTokens, num_tokens)});
      }
    }
  }

 private:
  static constexpr QuantizedShape kShape = Block::kShape;

  struct Range {
    int64_t begin, end;
  };

  void Multiply(const Range& rows, const Range& tokens) {
    for (int64_t s = 0; s < task_.x->num_steps; s += kPanelSteps) {
      const Range steps{s, std::min(s + kPanelSteps, task_.x->num_steps)};
      for (int64_t r = rows.begin; r < rows.end; r += kTileRows) {
        for (int64_t i = 0; i < kTileRows; ++i) {
          Unpack(std::min(r + i, rows.end - 1), steps, scratch_.panel[r + i - rows.begin]);
        }
      }
      for (int64_t t = tokens.begin; t < tokens.end; t += kTileTokens) {
        for (int64_t r = 0; r < rows.end - rows.begin; r += kTileRows) {
          const QuantizedTile tile{.w = scratch_.panel[r][0],
                                   .x = task_.x->Row(t) + s * IntegerStepBytes(kShape),
                                   .x_stride = task_.x->row_stride,
                                   .sums = scratch_.sums[r][t - tokens.begin],
                                   .num_steps = steps.end - steps.begin,
                                   .is_first = s == 0};
          MultiplyTileOf<kShape>(std::min(kTileTokens, tokens.end - t), tile);
        }
      }
    }
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const __m512 sums = _mm512_load_ps(scratch_.sums[row - rows.begin][t - tokens.begin]);
        WriteOut(task_, row, t, Ascending<kShape>(sums));
      }
    }
  }

  // The row after the last of an odd number is the last one again, and its sums are not used.
  void Unpack(int64_t row, const Range& steps, std::byte (*panel)[kLanesBytes]) {
    const int64_t num_blocks = task_.args->w.num_cols / kShape.block_columns;
    constexpr int64_t kAheadBytes = 4096;
    const auto* w = reinterpret_cast<const uint8_t*>(task_.args->w.data) + row * task_.row_bytes;
    uint8_t tail[kShape.step_bytes()];
    for (int64_t s = steps.begin; s < steps.end; ++s) {
      const uint8_t* step = w + s * kShape.step_bytes();
      for (int64_t line = 0; line < kShape.step_bytes(); line += 64) {
        hwy::Prefetch(step + kAheadBytes + line);
      }
      const Lanes<Block> lanes(WholeStep<Block>(step, num_blocks - s * kShape.step_blocks(), tail));
      lanes.StoreTo(panel[s - steps.begin]);
    }
  }

  const QuantizedTask& task_;
  QuantizedScratch& scratch_;
};

template <class Block>
void RunByDots(const QuantizedTask& task) {
  switch (task.args->num_tokens) {
    case 1:
      return RunInPlace<Block, 1>(task);
    case 2:
      return RunInPlace<Block, 2>(task);
    case 3:
      return RunInPlace<Block, 3>(task);
    case kFewTokens:
      return RunInPlace<Block, kFewTokens>(task);
    default:
      return Panels<Block>(task).Run();
  }
}

#endif  // HWY_AVX3

}  // namespace HWY_NAMESPACE
}  // namespace kvick
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
