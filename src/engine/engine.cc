#include "kvick/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/memory.h"
#include "engine/context_size.h"
#include "engine/sampler.h"

namespace kvick {
namespace {

using Clock = std::chrono::steady_clock;

int64_t MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

// A request that is under way.
struct Active {
  const GenerateRequest* request;
  GenerateResult* result;
  int64_t request_idx;
  Sampler sampler;
  SequenceId sequence;
  std::vector<int32_t> text;  // prompt and new tokens
  int64_t num_done = 0;       // tokens of the text that passes have taken in
  int64_t num_now = 0;        // tokens that the present pass takes in
  bool is_finished = false;

  bool is_in_prompt() const { return num_done < static_cast<int64_t>(request->prompt.size()); }
  int64_t num_left() const { return static_cast<int64_t>(text.size()) - num_done; }
  std::span<const int32_t> tokens_now() const {
    return std::span(text).subspan(static_cast<size_t>(num_done), static_cast<size_t>(num_now));
  }
};

}  // namespace

struct Engine::State {
  const Model* model = nullptr;
  EngineOptions options;
  ContextSize context;
  std::unique_ptr<KvCache> cache;  // null with CacheUse::kRecompute
  std::unique_ptr<ModelRunner> runner;
  EngineStats stats;
  int64_t num_prompt_done = 0;  // prompt tokens that passes of this Generate have taken in

  // One pass: who takes part, with what. Kept so that a pass allocates nothing.
  std::vector<Active> active;
  std::vector<WritePlan> plans;
  std::vector<RunnerSlice> slices;
  std::vector<float> logits;  // [max_sequences, V]

  int64_t max_batch_tokens() const { return std::max(options.chunk_tokens, options.max_sequences); }

  Status Check(const GenerateRequest& request) const;
  void Admit(std::span<const GenerateRequest> requests, int64_t request_idx,
             std::span<GenerateResult> results, const EngineCallbacks& callbacks);
  void Schedule();
  Status Pass();
  Status CachedPass();
  Status RecomputedPass();
  void Count(Clock::time_point start);
  Status TakeTokens(const EngineCallbacks& callbacks);
  Status TakeToken(Active& a, std::span<const float> row_logits, const EngineCallbacks& callbacks);
  Status Retire(const EngineCallbacks& callbacks);
  Status RunAll(std::span<const GenerateRequest> requests, std::span<GenerateResult> results,
                const EngineCallbacks& callbacks);
  void Clear();
  Status CachedLogits(SequenceId sequence, std::span<const int32_t> tokens,
                      std::span<float> all_logits, const EngineCallbacks& callbacks);
  Status RecomputedLogits(std::span<const int32_t> tokens, std::span<float> all_logits,
                          const EngineCallbacks& callbacks);
  void ReportPrompt(std::span<const GenerateRequest> requests,
                    const EngineCallbacks& callbacks) const;
};

Status Engine::State::Check(const GenerateRequest& request) const {
  KVICK_RETURN_IF_ERROR(CheckSampling(request.sampling));
  const auto num_tokens = static_cast<int64_t>(request.prompt.size());
  if (num_tokens < 1 || num_tokens > context.tokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: a prompt of {} tokens, 1 to {} (the context) are possible", num_tokens,
                context.tokens);
  }
  if (request.max_new_tokens < 0) {
    return Fail(ErrorCode::kInvalidArgument, "engine: max_new_tokens is {}, 0 or more is wanted",
                request.max_new_tokens);
  }
  for (const int32_t id : request.prompt) {
    if (id < 0 || id >= model->info().vocab_size) {
      return Fail(ErrorCode::kInvalidArgument,
                  "engine: token {} in a prompt, the vocabulary is 0 to {}", id,
                  model->info().vocab_size - 1);
    }
  }
  return {};
}

void Engine::State::Admit(std::span<const GenerateRequest> requests, int64_t request_idx,
                          std::span<GenerateResult> results, const EngineCallbacks& callbacks) {
  const GenerateRequest& request = requests[static_cast<size_t>(request_idx)];
  GenerateResult& result = results[static_cast<size_t>(request_idx)];
  if (request.max_new_tokens == 0) {
    num_prompt_done += static_cast<int64_t>(request.prompt.size());  // nothing to do for it
    if (callbacks.on_finish) callbacks.on_finish(request_idx);
    return;
  }
  Active added{&request, &result, request_idx, Sampler(request.sampling), {}, {}};
  const auto most_new = static_cast<size_t>(std::min(request.max_new_tokens, context.tokens + 1));
  added.text.reserve(request.prompt.size() + most_new);
  added.text = request.prompt;
  result.tokens.reserve(most_new);
  if (cache) added.sequence = cache->CreateSequence();
  active.push_back(std::move(added));
}

// Decoding sequences first, one token each, so that a long prompt delays nobody; then prompts in
// the order of admission, a chunk each, while the pass has room.
void Engine::State::Schedule() {
  int64_t room = max_batch_tokens();
  for (Active& a : active) {
    a.num_now = a.is_in_prompt() ? 0 : 1;
    room -= a.num_now;
  }
  for (Active& a : active) {
    if (!a.is_in_prompt()) continue;
    a.num_now = std::min({a.num_left(), options.chunk_tokens, room});
    room -= a.num_now;
  }
}

Status Engine::State::CachedPass() {
  plans.clear();
  slices.clear();
  for (const Active& a : active) {
    if (a.num_now == 0) continue;
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache->Reserve(a.sequence, a.num_now));
    plans.push_back(std::move(plan));
    slices.push_back({&plans.back(), a.tokens_now()});  // plans never grows past its capacity
  }
  const auto num_logits = slices.size() * static_cast<size_t>(model->info().vocab_size);
  KVICK_RETURN_IF_ERROR(
      runner->Run(*cache, slices, LogitsOf::kLast, std::span(logits).first(num_logits)));
  for (WritePlan& plan : plans) KVICK_RETURN_IF_ERROR(cache->Commit(std::move(plan)));
  const KvUsage usage = cache->Usage();
  if (usage.reserved_bytes >= stats.peak.reserved_bytes) stats.peak = usage;
  return {};
}

Status Engine::State::RecomputedPass() {
  const auto vocab_size = static_cast<size_t>(model->info().vocab_size);
  size_t row = 0;
  for (const Active& a : active) {
    if (a.num_now == 0) continue;
    const auto num_tokens = static_cast<size_t>(a.num_done + a.num_now);
    KVICK_RETURN_IF_ERROR(
        runner->RunUncached(std::span(a.text).first(num_tokens), LogitsOf::kLast,
                            std::span(logits).subspan(row++ * vocab_size, vocab_size)));
  }
  return {};
}

Status Engine::State::Pass() {
  Schedule();
  const Clock::time_point start = Clock::now();
  KVICK_RETURN_IF_ERROR(cache ? CachedPass() : RecomputedPass());
  Count(start);
  return {};
}

void Engine::State::Count(Clock::time_point start) {
  int64_t num_tokens = 0;
  bool has_prompt = false;
  for (const Active& a : active) {
    num_tokens += a.num_now;
    if (!a.is_in_prompt()) continue;
    num_prompt_done += a.num_now;
    has_prompt = true;
  }
  (has_prompt ? stats.prompt_tokens : stats.decode_tokens) += num_tokens;
  (has_prompt ? stats.prompt_us : stats.decode_us) += MicrosecondsSince(start);
}

// The sequences whose text has been taken in as a whole get their next token.
Status Engine::State::TakeTokens(const EngineCallbacks& callbacks) {
  const auto vocab_size = static_cast<size_t>(model->info().vocab_size);
  size_t row = 0;
  for (Active& a : active) {
    if (a.num_now == 0) continue;
    a.num_done += a.num_now;
    const auto row_logits = std::span(logits).subspan(row++ * vocab_size, vocab_size);
    if (a.num_left() == 0) KVICK_RETURN_IF_ERROR(TakeToken(a, row_logits, callbacks));
  }
  return {};
}

Status Engine::State::TakeToken(Active& a, std::span<const float> row_logits,
                                const EngineCallbacks& callbacks) {
  KVICK_ASSIGN_OR_RETURN(const int32_t token, a.sampler.Sample(row_logits));
  const std::vector<int32_t>& end_ids = model->info().end_ids;
  a.is_finished = true;
  if (!a.request->ignore_end && std::binary_search(end_ids.begin(), end_ids.end(), token)) {
    a.result->finish_reason = FinishReason::kStop;
    return {};
  }
  a.text.push_back(token);
  a.result->tokens.push_back(token);
  if (callbacks.on_token && !callbacks.on_token(a.request_idx, token)) {
    a.result->finish_reason = FinishReason::kCancelled;
  } else if (static_cast<int64_t>(a.result->tokens.size()) == a.request->max_new_tokens) {
    a.result->finish_reason = FinishReason::kLength;
  } else if (static_cast<int64_t>(a.text.size()) > context.tokens) {
    a.result->finish_reason = FinishReason::kLength;
    a.result->context_is_full = true;
  } else {
    a.is_finished = false;
  }
  return {};
}

Status Engine::State::Retire(const EngineCallbacks& callbacks) {
  for (const Active& a : active) {
    if (!a.is_finished) continue;
    if (cache) KVICK_RETURN_IF_ERROR(cache->Drop(a.sequence));
    if (callbacks.on_finish) callbacks.on_finish(a.request_idx);
  }
  std::erase_if(active, [](const Active& a) { return a.is_finished; });
  return {};
}

Status Engine::State::RunAll(std::span<const GenerateRequest> requests,
                             std::span<GenerateResult> results, const EngineCallbacks& callbacks) {
  const auto num_requests = static_cast<int64_t>(requests.size());
  num_prompt_done = 0;
  for (int64_t num_admitted = 0;;) {
    while (num_admitted < num_requests &&
           static_cast<int64_t>(active.size()) < options.max_sequences) {
      Admit(requests, num_admitted++, results, callbacks);
    }
    if (active.empty()) return {};
    KVICK_RETURN_IF_ERROR(Pass());
    ReportPrompt(requests, callbacks);
    KVICK_RETURN_IF_ERROR(TakeTokens(callbacks));
    KVICK_RETURN_IF_ERROR(Retire(callbacks));
  }
}

// After an error requests are still under way: their plans and sequences go.
void Engine::State::Clear() {
  slices.clear();
  plans.clear();
  for (const Active& a : active) {
    if (cache) KVICK_CHECK(cache->Drop(a.sequence).has_value());
  }
  active.clear();
}

void Engine::State::ReportPrompt(std::span<const GenerateRequest> requests,
                                 const EngineCallbacks& callbacks) const {
  if (!callbacks.on_prompt) return;
  int64_t num_total = 0;
  for (const GenerateRequest& request : requests) {
    num_total += static_cast<int64_t>(request.prompt.size());
  }
  callbacks.on_prompt(num_prompt_done, num_total);
}

Status Engine::State::CachedLogits(SequenceId sequence, std::span<const int32_t> tokens,
                                   std::span<float> all_logits, const EngineCallbacks& callbacks) {
  const auto vocab_size = static_cast<size_t>(model->info().vocab_size);
  const auto chunk = static_cast<size_t>(options.chunk_tokens);
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    const size_t num = std::min(chunk, tokens.size() - i);
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache->Reserve(sequence, static_cast<int64_t>(num)));
    const RunnerSlice slice{&plan, tokens.subspan(i, num)};
    KVICK_RETURN_IF_ERROR(runner->Run(*cache, {&slice, 1}, LogitsOf::kAll,
                                      all_logits.subspan(i * vocab_size, num * vocab_size)));
    KVICK_RETURN_IF_ERROR(cache->Commit(std::move(plan)));
    if (callbacks.on_prompt) {
      callbacks.on_prompt(static_cast<int64_t>(i + num), static_cast<int64_t>(tokens.size()));
    }
  }
  return {};
}

Status Engine::State::RecomputedLogits(std::span<const int32_t> tokens, std::span<float> all_logits,
                                       const EngineCallbacks& callbacks) {
  const auto vocab_size = static_cast<size_t>(model->info().vocab_size);
  for (size_t i = 0; i < tokens.size(); ++i) {
    KVICK_RETURN_IF_ERROR(runner->RunUncached(tokens.first(i + 1), LogitsOf::kLast,
                                              all_logits.subspan(i * vocab_size, vocab_size)));
    if (callbacks.on_prompt) {
      callbacks.on_prompt(static_cast<int64_t>(i + 1), static_cast<int64_t>(tokens.size()));
    }
  }
  return {};
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Create(const Model& model, const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->model = &model;
  state->options = options;
  KVICK_ASSIGN_OR_RETURN(state->context,
                         ChooseContext(model.info(), options, AvailableMemoryBytes()));
  if (options.cache_use == CacheUse::kRecompute) {
    state->options.chunk_tokens = state->context.tokens;  // each pass takes in the whole text
  }
  RunnerOptions runner;
  runner.kv_dtype = options.kv_dtype;
  runner.isa = options.isa;
  runner.num_threads = options.num_threads;
  runner.max_slices = options.max_sequences;
  runner.max_batch_tokens =
      std::min(state->max_batch_tokens(), options.max_sequences * state->context.tokens);
  KVICK_ASSIGN_OR_RETURN(state->runner, ModelRunner::Create(model, runner));
  state->options.isa = state->runner->isa();  // the caller's string may not live
  if (options.cache_use == CacheUse::kCached) {
    KVICK_ASSIGN_OR_RETURN(
        state->cache, KvCache::Create(CacheConfig(model.info(), options, state->context.tokens)));
  }
  const auto max_sequences = static_cast<size_t>(options.max_sequences);
  state->active.reserve(max_sequences);
  state->plans.reserve(max_sequences);
  state->slices.reserve(max_sequences);
  state->logits.resize(max_sequences * static_cast<size_t>(model.info().vocab_size));
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<std::vector<GenerateResult>> Engine::Generate(std::span<const GenerateRequest> requests,
                                                     const EngineCallbacks& callbacks) {
  for (const GenerateRequest& request : requests) KVICK_RETURN_IF_ERROR(state_->Check(request));
  std::vector<GenerateResult> results(requests.size());
  const Status status = state_->RunAll(requests, results, callbacks);
  state_->Clear();
  KVICK_RETURN_IF_ERROR(status);
  return results;
}

Status Engine::Logits(std::span<const int32_t> tokens, std::span<float> logits,
                      const EngineCallbacks& callbacks) {
  State& state = *state_;
  GenerateRequest request;
  request.prompt.assign(tokens.begin(), tokens.end());
  KVICK_RETURN_IF_ERROR(state.Check(request));
  const auto vocab_size = static_cast<size_t>(state.model->info().vocab_size);
  if (logits.size() != tokens.size() * vocab_size) {
    return Fail(ErrorCode::kInvalidArgument, "engine: room for {} logits, {} are computed",
                logits.size(), tokens.size() * vocab_size);
  }
  if (!state.cache) return state.RecomputedLogits(tokens, logits, callbacks);
  const SequenceId sequence = state.cache->CreateSequence();
  const Status status = state.CachedLogits(sequence, tokens, logits, callbacks);
  KVICK_RETURN_IF_ERROR(state.cache->Drop(sequence));
  return status;
}

int64_t Engine::context_tokens() const { return state_->context.tokens; }
bool Engine::context_is_capped() const { return state_->context.is_capped; }
const KvCache* Engine::cache() const { return state_->cache.get(); }
const ModelRunner& Engine::runner() const { return *state_->runner; }
const EngineStats& Engine::stats() const { return state_->stats; }

}  // namespace kvick
