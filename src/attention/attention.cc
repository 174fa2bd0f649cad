#include "kvick/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attention/attention_kernel.h"
#include "attention/online_softmax.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/exec.h"
#include "base/flush_subnormals.h"
#include "base/memory.h"
#include "base/tensor_check.h"

namespace kvick {
namespace {

constexpr int64_t kAlignment = 64;

// Up to kMaxColumns columns of one or more KV heads of one sequence: the unit of work of a thread.
struct ColumnTask {
  const AttentionQuery* query = nullptr;
  int64_t layer = 0;
  int64_t window = kNoWindow;
  int64_t first_kv_head = 0;
  QueryColumns columns;
  float* out = nullptr;  // row 0 of the sequence, head 0 of the first group; strides as the queries
};

// What Run was given.
struct Pass {
  int64_t layer = 0;
  std::span<const AttentionQuery> queries;
  const float* q = nullptr;
  float* out = nullptr;
};

// The scratch memory of a thread.
struct Workspace {
  std::byte* packed_queries = nullptr;
  std::byte* kernel_scratch = nullptr;
  PartialResult chunk;
  PartialResult total;
  int64_t* num_visible = nullptr;  // [kMaxColumns]
};

OnlineSoftmax Column(const PartialResult& result, int64_t column, int64_t head_dim) {
  return {result.max + column, result.sum + column, result.out + column * head_dim};
}

}  // namespace

struct Attention::State {
  AttentionConfig config;
  ScoreScale scale;
  Exec exec;
  const AttentionKernel* kernel = nullptr;
  const OnlineSoftmaxKernel* online_softmax = nullptr;
  MappedRegion memory;
  std::vector<Workspace> workspaces;  // [num_threads]

  int64_t heads_per_group() const { return config.num_heads / config.num_kv_heads; }
  int64_t KvHeadsTogether(const AttentionQuery& query, int64_t num_queries) const;
  int64_t NumColumnTasks(const AttentionQuery& query, int64_t num_queries) const;

  Status Allocate();
  int64_t WindowOf(int64_t layer) const;
  Status CheckQuery(int64_t layer, const AttentionQuery& query) const;
  ColumnTask TaskAt(int64_t task_idx, const Pass& pass) const;
  void Prepare(const ColumnTask& task, const Workspace& workspace) const;
  void AttendChunk(const ColumnTask& task, int64_t chunk_idx, const Workspace& from,
                   const Workspace& to) const;
  void MergeChunk(const ColumnTask& task, int64_t chunk_idx, const Workspace& from,
                  const Workspace& to) const;
  void WriteOut(const ColumnTask& task, const Workspace& workspace) const;
  void RunTask(const ColumnTask& task, const Workspace& workspace) const;
  void RunTaskOnAllThreads(const ColumnTask& task) const;
};

namespace {

// The chunk in which a window that ends at num_visible begins.
int64_t FirstChunk(int64_t num_visible, int64_t window) {
  return std::max<int64_t>(0, num_visible - window) / kChunkTokens;
}

struct ChunkRange {
  int64_t begin, end;
};

// From the first chunk that the first column of a task sees to the last one of its last column.
ChunkRange ChunksOf(const ColumnTask& task) {
  const int64_t num_cached = task.query->kv.length - task.query->num_tokens;
  const auto num_visible = [&](int64_t column) {
    return num_cached + (task.columns.first + column) / task.columns.heads_per_group + 1;
  };
  return {FirstChunk(num_visible(0), task.window),
          CeilDiv(num_visible(task.columns.num - 1), kChunkTokens)};
}

}  // namespace

// One mapping holds the workspaces of all threads, each part aligned.
Status Attention::State::Allocate() {
  constexpr int64_t kFloatBytes = sizeof(float);
  const int64_t packed_bytes = kernel->packed_query_bytes(config.head_dim);
  const int64_t scratch_bytes = kernel->scratch_bytes(config.head_dim);
  const int64_t row_bytes = RoundUp(kMaxColumns * kFloatBytes, kAlignment);
  const int64_t out_bytes = RoundUp(kMaxColumns * config.head_dim * kFloatBytes, kAlignment);
  const int64_t visible_bytes = kMaxColumns * static_cast<int64_t>(sizeof(int64_t));
  const int64_t thread_bytes =
      packed_bytes + scratch_bytes + 2 * (2 * row_bytes + out_bytes) + visible_bytes;
  KVICK_ASSIGN_OR_RETURN(memory,
                         MappedRegion::Create(thread_bytes * exec.num_threads, Backing::kUpFront));
  std::byte* next = memory.data();
  const auto take = [&next](int64_t num_bytes) { return std::exchange(next, next + num_bytes); };
  const auto take_floats = [&take](int64_t num_bytes) {
    return reinterpret_cast<float*>(take(num_bytes));
  };
  for (int i = 0; i < exec.num_threads; ++i) {
    Workspace& workspace = workspaces.emplace_back();
    workspace.packed_queries = take(packed_bytes);
    workspace.kernel_scratch = take(scratch_bytes);
    for (PartialResult* result : {&workspace.chunk, &workspace.total}) {
      *result = {take_floats(row_bytes), take_floats(row_bytes), take_floats(out_bytes)};
    }
    workspace.num_visible = reinterpret_cast<int64_t*>(take(visible_bytes));
  }
  return {};
}

int64_t Attention::State::WindowOf(int64_t layer) const {
  const int64_t window = config.windows.empty() ? 0 : config.windows[static_cast<size_t>(layer)];
  return window == 0 ? kNoWindow : window;
}

Status Attention::State::CheckQuery(int64_t layer, const AttentionQuery& query) const {
  const KvLayout& layout = query.kv.layout;
  if (layout.num_kv_heads != config.num_kv_heads || layout.head_dim != config.head_dim ||
      layout.dtype != config.dtype) {
    return Fail(ErrorCode::kInvalidArgument,
                "attention: expected a view of {} kv heads of {} {}, got {} of {} {}",
                config.num_kv_heads, config.head_dim, DTypeName(config.dtype), layout.num_kv_heads,
                layout.head_dim, DTypeName(layout.dtype));
  }
  if (layer < 0 || layer >= layout.num_layers) {
    return Fail(ErrorCode::kInvalidArgument, "attention: layer: expected 0 to {}, got {}",
                layout.num_layers - 1, layer);
  }
  if (!config.windows.empty() && layer >= std::ssize(config.windows)) {
    return Fail(ErrorCode::kInvalidArgument, "attention: layer: expected 0 to {}, got {}",
                std::ssize(config.windows) - 1, layer);
  }
  constexpr int64_t kMaxTokens = int64_t{1} << 40;  // so that sums and products fit
  if (query.num_tokens < 1 || query.num_tokens > std::min(query.kv.length, kMaxTokens) ||
      query.kv.length > kMaxTokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "attention: expected 1 to {} new tokens (the length of the view), got {}",
                query.kv.length, query.num_tokens);
  }
  const int64_t first_seen =
      std::max<int64_t>(0, query.kv.length - query.num_tokens + 1 - WindowOf(layer));
  if (query.kv.begin > first_seen) {
    return Fail(ErrorCode::kInvalidArgument,
                "attention: expected a view that begins at {} or before, got one that begins at {}",
                first_seen, query.kv.begin);
  }
  return {};
}

// How many KV heads a task processes together. Their rows of a block are adjacent, so that small
// blocks, too short to be read at full speed for one head, make longer runs. Only as many as leave
// every thread something to do.
int64_t Attention::State::KvHeadsTogether(const AttentionQuery& query, int64_t num_queries) const {
  constexpr int64_t kLongRunBytes = int64_t{64} << 10;
  const KvLayout& layout = query.kv.layout;
  if (query.num_tokens * heads_per_group() > kernel->max_columns) return 1;
  if (layout.block_tokens * layout.slot_stride >= kLongRunBytes) return 1;
  int64_t num_heads = config.num_kv_heads;
  const auto is_too_many = [&](int64_t num) {
    return num > kernel->max_kv_heads || config.num_kv_heads % num != 0 ||
           config.num_kv_heads / num * num_queries < exec.num_threads;
  };
  while (num_heads > 1 && is_too_many(num_heads)) --num_heads;
  return num_heads;
}

int64_t Attention::State::NumColumnTasks(const AttentionQuery& query, int64_t num_queries) const {
  return config.num_kv_heads / KvHeadsTogether(query, num_queries) *
         CeilDiv(query.num_tokens * heads_per_group(), kMaxColumns);
}

ColumnTask Attention::State::TaskAt(int64_t task_idx, const Pass& pass) const {
  const int64_t token_stride = config.num_heads * config.head_dim;
  int64_t first_row = 0;
  for (const AttentionQuery& query : pass.queries) {
    const auto num_queries = std::ssize(pass.queries);
    const int64_t num_tasks = NumColumnTasks(query, num_queries);
    if (task_idx >= num_tasks) {
      task_idx -= num_tasks;
      first_row += query.num_tokens;
      continue;
    }
    const int64_t num_heads = KvHeadsTogether(query, num_queries);
    const int64_t num_head_tasks = config.num_kv_heads / num_heads;
    ColumnTask task;
    task.query = &query;
    task.layer = pass.layer;
    task.window = WindowOf(pass.layer);
    task.first_kv_head = task_idx % num_head_tasks * num_heads;
    const int64_t offset =
        first_row * token_stride + task.first_kv_head * heads_per_group() * config.head_dim;
    task.columns.q = pass.q + offset;
    task.columns.token_stride = token_stride;
    task.columns.heads_per_group = heads_per_group();
    task.columns.head_dim = config.head_dim;
    task.columns.num_kv_heads = num_heads;
    task.columns.first = task_idx / num_head_tasks * kMaxColumns;
    task.columns.num =
        std::min(kMaxColumns, query.num_tokens * heads_per_group() - task.columns.first);
    task.out = pass.out + offset;
    return task;
  }
  KVICK_CHECK(false && "task_idx is past the last task");
  return {};
}

void Attention::State::Prepare(const ColumnTask& task, const Workspace& workspace) const {
  const int64_t num_cached = task.query->kv.length - task.query->num_tokens;
  for (int64_t i = 0; i < task.columns.total(); ++i) {
    const int64_t c = task.columns.first + i % task.columns.num;
    workspace.num_visible[i] = num_cached + c / heads_per_group() + 1;
  }
  kernel->pack_queries(task.columns, workspace.packed_queries);
}

// Reads the queries from one workspace, and writes the chunk's result to the other.
void Attention::State::AttendChunk(const ColumnTask& task, int64_t chunk_idx, const Workspace& from,
                                   const Workspace& to) const {
  ChunkTask chunk;
  chunk.kv = &task.query->kv;
  chunk.layer = task.layer;
  chunk.first_kv_head = task.first_kv_head;
  chunk.num_kv_heads = task.columns.num_kv_heads;
  chunk.begin = chunk_idx * kChunkTokens;
  chunk.end = std::min(chunk.begin + kChunkTokens, from.num_visible[task.columns.num - 1]);
  chunk.packed_queries = from.packed_queries;
  chunk.num_columns = task.columns.num;
  chunk.num_visible = from.num_visible;
  chunk.window = task.window;
  chunk.scale = scale;
  chunk.scratch = to.kernel_scratch;
  kernel->attend_chunk(chunk, to.chunk);
}

// The first chunk that a column sees is copied, not merged.
void Attention::State::MergeChunk(const ColumnTask& task, int64_t chunk_idx, const Workspace& from,
                                  const Workspace& to) const {
  for (int64_t c = 0; c < task.columns.total(); ++c) {
    const int64_t first_chunk = FirstChunk(to.num_visible[c], task.window);
    if (chunk_idx < first_chunk || to.num_visible[c] <= chunk_idx * kChunkTokens) continue;
    const OnlineSoftmax total = Column(to.total, c, config.head_dim);
    const OnlineSoftmax chunk = Column(from.chunk, c, config.head_dim);
    if (chunk_idx > first_chunk) {
      online_softmax->merge(total, chunk, config.head_dim);
    } else {
      *total.max = *chunk.max;
      *total.sum = *chunk.sum;
      std::copy_n(chunk.out, config.head_dim, total.out);
    }
  }
}

void Attention::State::WriteOut(const ColumnTask& task, const Workspace& workspace) const {
  for (int64_t c = 0; c < task.columns.total(); ++c) {
    const OnlineSoftmax total = Column(workspace.total, c, config.head_dim);
    online_softmax->divide(total, config.head_dim,
                           task.out + (task.columns.Row(c) - task.columns.q));
  }
}

void Attention::State::RunTask(const ColumnTask& task, const Workspace& workspace) const {
  Prepare(task, workspace);
  const ChunkRange chunks = ChunksOf(task);
  for (int64_t i = chunks.begin; i < chunks.end; ++i) {
    AttendChunk(task, i, workspace, workspace);
    MergeChunk(task, i, workspace, workspace);
  }
  WriteOut(task, workspace);
}

// Computes chunks in parallel, one per thread, and merges them in ascending order: the same bits as
// RunTask.
void Attention::State::RunTaskOnAllThreads(const ColumnTask& task) const {
  const FlushSubnormals flush;
  const Workspace& main = workspaces[0];
  Prepare(task, main);
  const ChunkRange chunks = ChunksOf(task);
  for (int64_t first = chunks.begin; first < chunks.end; first += exec.num_threads) {
    const int64_t num = std::min<int64_t>(exec.num_threads, chunks.end - first);
    ParallelKernel(exec.num_threads, num, [&](int64_t i, int) {
      AttendChunk(task, first + i, main, workspaces[static_cast<size_t>(i)]);
    });
    for (int64_t i = 0; i < num; ++i) {
      MergeChunk(task, first + i, workspaces[static_cast<size_t>(i)], main);
    }
  }
  WriteOut(task, main);
}

Attention::Attention(std::unique_ptr<State> state) : state_(std::move(state)) {}
Attention::~Attention() = default;

std::string Attention::numerics() const { return NumericsName(state_->exec); }
std::string_view Attention::isa() const { return IsaName(state_->exec.isa); }

Result<std::unique_ptr<Attention>> Attention::Create(const AttentionConfig& config) {
  if (config.num_heads < 1 || config.num_kv_heads < 1 ||
      config.num_heads % config.num_kv_heads != 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "attention: num_heads: expected a positive multiple of num_kv_heads ({}), got {}",
                config.num_kv_heads, config.num_heads);
  }
  if (config.head_dim < 2 || config.head_dim > kMaxHeadDim || config.head_dim % 2 != 0) {
    return Fail(ErrorCode::kUnsupported,
                "attention: head_dim: expected an even number from 2 to {}, got {}", kMaxHeadDim,
                config.head_dim);
  }
  if (!std::isfinite(config.scale)) {
    return Fail(ErrorCode::kInvalidArgument, "attention: scale: expected a finite number, got {}",
                config.scale);
  }
  if (!std::isfinite(config.soft_cap) || config.soft_cap < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "attention: soft_cap: expected a finite number from 0 on, got {}", config.soft_cap);
  }
  for (const int64_t window : config.windows) {
    if (window >= 0) continue;
    return Fail(ErrorCode::kInvalidArgument,
                "attention: windows: expected 0 or a number of tokens, got {}", window);
  }
  auto state = std::make_unique<State>();
  KVICK_ASSIGN_OR_RETURN(state->exec, MakeExec(config.exec));
  state->config = config;
  if (config.scale == 0) state->config.scale = 1 / std::sqrt(static_cast<float>(config.head_dim));
  state->scale = {state->config.scale, config.soft_cap};
  if (config.soft_cap > 0) state->scale.factor /= config.soft_cap;
  state->config.exec = OptionsOf(state->exec);  // the caller's strings may not live as long
  state->kernel = &AttentionKernelFor(state->exec.isa, config.dtype);
  state->online_softmax = &OnlineSoftmaxKernelFor(state->exec.isa);
  KVICK_RETURN_IF_ERROR(state->Allocate());
  return std::unique_ptr<Attention>(new Attention(std::move(state)));
}

Status Attention::Run(int64_t layer, std::span<const AttentionQuery> queries, const TensorView& q,
                      const MutableTensorView& out) {
  const AttentionConfig& config = state_->config;
  int64_t num_tokens = 0, num_tasks = 0;
  for (const AttentionQuery& query : queries) {
    KVICK_RETURN_IF_ERROR(state_->CheckQuery(layer, query));
    num_tokens += query.num_tokens;
    num_tasks += state_->NumColumnTasks(query, std::ssize(queries));
  }
  KVICK_RETURN_IF_ERROR(
      CheckDense("attention: q", q, {num_tokens, config.num_heads, config.head_dim}));
  KVICK_RETURN_IF_ERROR(
      CheckDense("attention: out", out, {num_tokens, config.num_heads, config.head_dim}));
  const Pass pass{layer, queries, reinterpret_cast<const float*>(q.data),
                  reinterpret_cast<float*>(out.data)};
  if (num_tasks < state_->exec.num_threads) {
    for (int64_t i = 0; i < num_tasks; ++i) {
      state_->RunTaskOnAllThreads(state_->TaskAt(i, pass));
    }
    return {};
  }
  ParallelKernel(state_->exec.num_threads, num_tasks, [&](int64_t i, int thread) {
    state_->RunTask(state_->TaskAt(i, pass), state_->workspaces[static_cast<size_t>(thread)]);
  });
  return {};
}

}  // namespace kvick
