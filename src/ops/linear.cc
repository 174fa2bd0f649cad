#include "ops/linear.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/flush_subnormals.h"
#include "ops/linear_kernels.h"
#include "ops/linear_quantized.h"
#include "ops/linear_tiles.h"
#include "ops/packed_activations.h"
#include "ops/parallel_rows.h"

namespace kvick {
namespace {

constexpr int64_t kAlignment = 64;

int64_t PackedBytes(const PackedActivations& packed, int64_t max_tokens) {
  return RoundUp(max_tokens * packed.row_stride, kAlignment);
}

// Rows of a task: few enough that every thread gets several tasks, as many as the panels take.
int64_t PanelRowsPerTask(const Exec& exec, int64_t num_rows) {
  constexpr int64_t kMaxMultiples = 2, kTasksPerThread = 4;
  const int64_t num_multiples = num_rows / kPanelRowMultiple / (kTasksPerThread * exec.num_threads);
  return kPanelRowMultiple * std::clamp<int64_t>(num_multiples, 1, kMaxMultiples);
}

void LinearOnVectors(const Exec& exec, const LinearArgs& args, std::byte* scratch) {
  const int64_t row_bytes = RowBytes(args.w);
  const ActivationFormat format = FormatFor(exec.isa, args.w.type, args.num_tokens);
  PackedActivations packed =
      PackedActivations::For(format, NumTerms(format, args.activations), args.w.num_cols);
  packed.data = scratch;
  PackActivations(exec, args, packed);
  std::byte* const panels = scratch + PackedBytes(packed, args.num_tokens);
  const bool in_panels = args.num_tokens >= MinPanelTokens(exec.isa);
  const int64_t rows_per_task =
      in_panels ? PanelRowsPerTask(exec, args.w.num_rows) : WeightRowsPerTask(row_bytes, 4);
  const int64_t num_tasks = CeilDiv(args.w.num_rows, rows_per_task);
  ParallelKernel(exec.num_threads, num_tasks, [&](int64_t task_idx, int thread) {
    LinearTask task{&args, &packed, row_bytes, task_idx * rows_per_task, 0};
    task.end_row = std::min(task.begin_row + rows_per_task, args.w.num_rows);
    task.has_bf16_dot = exec.isa == Isa::kAvx512Bf16 && args.w.type == WeightType::kBF16;
    task.scratch = panels + thread * PanelScratchBytes();
    in_panels ? MultiplyInPanels(exec.isa, task) : MultiplyInPlace(exec.isa, task);
  });
}

QuantizedActivations WithoutMemory(const Exec& exec, WeightType type, int64_t num_cols) {
  const IntegerLayout layout = HasInt8Dot(exec.isa) ? IntegerLayout::kLanes : IntegerLayout::kInt16;
  return QuantizedActivations::For(layout, ShapeOf(type), num_cols);
}

void LinearQuantized(const Exec& exec, const LinearArgs& args, std::byte* scratch) {
  const int64_t row_bytes = RowBytes(args.w), num_rows = args.w.num_rows;
  QuantizedActivations x = WithoutMemory(exec, args.w.type, args.w.num_cols);
  x.data = scratch;
  QuantizeActivations(exec, args, x);
  std::byte* const of_threads = scratch + args.num_tokens * x.row_stride;
  const int64_t rows_per_task = QuantizedRowsPerTask(args);
  ParallelKernel(
      exec.num_threads, CeilDiv(num_rows, rows_per_task), [&](int64_t task_idx, int thread) {
        const int64_t begin = task_idx * rows_per_task;
        MultiplyQuantized(exec.isa,
                          {&args, &x, row_bytes, begin, std::min(begin + rows_per_task, num_rows),
                           of_threads + thread * QuantizedScratchBytes()});
      });
}

}  // namespace

int64_t LinearScratchBytes(const Exec& exec, WeightType type, int64_t max_tokens,
                           int64_t num_cols) {
  KVICK_CHECK(max_tokens >= 0 && num_cols >= 1);
  if (UsesTiles(exec.isa, type)) return TileScratchBytes(max_tokens, num_cols);
  if (FormatOf(type).is_quantized()) {
    return max_tokens * WithoutMemory(exec, type, num_cols).row_stride +
           exec.num_threads * QuantizedScratchBytes();
  }
  // Fewer tokens may take a format that needs more.
  const ActivationFormat format = FormatFor(exec.isa, type, 1);
  const int num_terms = NumTerms(format, Activations::kSplit);
  const int64_t packed_bytes =
      PackedBytes(PackedActivations::For(format, num_terms, num_cols), max_tokens);
  const bool has_panels = max_tokens >= MinPanelTokens(exec.isa);
  return packed_bytes + (has_panels ? exec.num_threads * PanelScratchBytes() : 0);
}

void Linear(const Exec& exec, const LinearArgs& args, std::span<std::byte> scratch) {
  const MatrixView& w = args.w;
  KVICK_CHECK(args.num_tokens >= 0 && w.num_rows >= 1 && w.num_cols >= 1);
  KVICK_CHECK(static_cast<int64_t>(scratch.size()) >=
              LinearScratchBytes(exec, w.type, args.num_tokens, w.num_cols));
  KVICK_CHECK(reinterpret_cast<uintptr_t>(scratch.data()) % kAlignment == 0);
  if (args.num_tokens == 0) return;
#if defined(__x86_64__)
  if (UsesTiles(exec.isa, w.type)) {
    return exec.isa == Isa::kAmx ? LinearOnTiles<HardwareTiles>(exec, args, scratch)
                                 : LinearOnTiles<EmulatedTiles>(exec, args, scratch);
  }
#endif
  FormatOf(w.type).is_quantized() ? LinearQuantized(exec, args, scratch.data())
                                  : LinearOnVectors(exec, args, scratch.data());
}

}  // namespace kvick
