#include "kvick/engine.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/fork_generation.h"
#include "engine/batcher.h"

namespace kvick {
namespace {

struct NewRequest {
  RequestId id{};
  GenerateRequest request;
  RequestCallbacks callbacks;
  Clock::time_point submitted;
};

// What callers have asked for since the last step.
struct Inbox {
  std::vector<NewRequest> requests;
  std::vector<RequestId> cancels;
  bool cancel_all = false;

  bool is_empty() const { return requests.empty() && cancels.empty() && !cancel_all; }
};

// Gathers the results of Generate, where requests end in any order.
class Results {
 public:
  explicit Results(std::span<const GenerateRequest> requests) {
    for (const GenerateRequest& request : requests) {
      first_.push_back(results_.size());
      results_.resize(results_.size() + static_cast<size_t>(request.num_samples));
    }
    num_left_ = results_.size();
  }

  void Put(size_t request_idx, GenerateResult result) {
    const std::lock_guard lock(mutex_);
    results_[first_[request_idx] + static_cast<size_t>(result.sample_idx)] = std::move(result);
    if (--num_left_ == 0) is_complete_.notify_one();
  }
  std::vector<GenerateResult> Wait() {
    std::unique_lock lock(mutex_);
    is_complete_.wait(lock, [this] { return num_left_ == 0; });
    return std::move(results_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_complete_;
  std::vector<size_t> first_;
  std::vector<GenerateResult> results_;
  size_t num_left_ = 0;
};

}  // namespace

// Owned by the Engine and by its thread: when a callback destroys the Engine, the thread is the
// last.
struct Engine::State {
  std::unique_ptr<Batcher> batcher;  // the thread's, but for Check and what never changes
  const uint32_t fork_generation = ForkGeneration();

  mutable std::mutex mutex;  // of all that follows
  std::condition_variable has_news;
  Inbox inbox;
  EngineStats stats;
  uint64_t last_id = 0;
  bool is_shut_down = false;
  bool has_ended = false;  // the thread: nothing is left, nothing will come

  std::mutex joining;
  std::thread thread;
  std::thread::id thread_id;  // of thread, also when it has ended

  // In a child of fork() the thread does not exist, and the mutexes may be locked forever.
  bool is_of_parent_process() const { return fork_generation != ForkGeneration(); }
  bool is_own_thread() const { return std::this_thread::get_id() == thread_id; }
  // Appends them to the queue and returns the id of the last. Errors: cancelled.
  Result<RequestId> Enqueue(std::vector<NewRequest> requests);
  // Accepts no more requests.
  void Close(ShutdownMode mode);
  // The body of the thread.
  void Serve();
  // Waits for something to do. False at the end.
  bool TakeInbox(Inbox& taken);
  // Called before ends are reported: a callback finds its request's end in the stats.
  void UpdateStats();
};

Result<RequestId> Engine::State::Enqueue(std::vector<NewRequest> requests) {
  if (is_of_parent_process()) {
    return Fail(
        ErrorCode::kCancelled,
        "engine: expected an engine of this process, got one that was created before fork()");
  }
  const std::lock_guard lock(mutex);
  if (is_shut_down) {
    return Fail(ErrorCode::kCancelled,
                "engine: expected a running engine, got one that is shut down");
  }
  const Clock::time_point now = Clock::now();
  for (NewRequest& request : requests) {
    request.id = RequestId{++last_id};
    request.submitted = now;
    inbox.requests.push_back(std::move(request));
  }
  has_news.notify_one();
  return RequestId{last_id};
}

bool Engine::State::TakeInbox(Inbox& taken) {
  std::unique_lock lock(mutex);
  has_news.wait(lock, [this] { return batcher->has_work() || !inbox.is_empty() || is_shut_down; });
  taken = std::exchange(inbox, {});
  has_ended = !batcher->has_work() && taken.is_empty();
  return !has_ended;
}

void Engine::State::Serve() {
  for (Inbox inbox_now; TakeInbox(inbox_now);) {
    for (NewRequest& r : inbox_now.requests) {
      batcher->Add(r.id, std::move(r.request), std::move(r.callbacks), r.submitted);
    }
    batcher->Cancel(inbox_now.cancels);
    if (inbox_now.cancel_all) batcher->CancelAll();
    UpdateStats();  // a step may take long, and these requests are no longer in the inbox
    batcher->Step();
    UpdateStats();
    batcher->ReportEnds();
  }
}

void Engine::State::UpdateStats() {
  const std::lock_guard lock(mutex);
  stats = batcher->stats();
}

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kFailed:
      return "failed";
  }
  return "unknown";
}

Engine::Engine(std::shared_ptr<State> state) : state_(std::move(state)) {}

Engine::~Engine() {
  if (state_->is_of_parent_process()) {
    new std::shared_ptr<State>(std::move(state_));  // the thread may have left it half changed
    return;
  }
  Shutdown(ShutdownMode::kAbort);
  if (state_->is_own_thread()) state_->thread.detach();
}

Result<std::unique_ptr<Engine>> Engine::Create(const Model& model, const EngineOptions& options) {
  auto state = std::make_shared<State>();
  KVICK_ASSIGN_OR_RETURN(state->batcher, Batcher::Create(model, options));
  state->stats = state->batcher->stats();
  try {
    state->thread = std::thread([state] { state->Serve(); });
    state->thread_id = state->thread.get_id();
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kExhausted, "engine: cannot create a thread: {}", error.what());
  }
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<RequestId> Engine::Submit(GenerateRequest request, RequestCallbacks callbacks) {
  KVICK_RETURN_IF_ERROR(state_->batcher->Check(request));
  std::vector<NewRequest> one;
  one.push_back({{}, std::move(request), std::move(callbacks), {}});
  return state_->Enqueue(std::move(one));
}

void Engine::Cancel(RequestId request) {
  if (state_->is_of_parent_process()) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->has_ended) return;
  state_->inbox.cancels.push_back(request);
  state_->has_news.notify_one();
}

void Engine::State::Close(ShutdownMode mode) {
  const std::lock_guard lock(mutex);
  is_shut_down = true;
  inbox.cancel_all |= mode == ShutdownMode::kAbort;
  has_news.notify_one();
}

void Engine::Shutdown(ShutdownMode mode) {
  if (state_->is_of_parent_process()) return;
  state_->Close(mode);
  if (state_->is_own_thread()) return;
  const std::lock_guard lock(state_->joining);
  if (state_->thread.joinable()) state_->thread.join();
}

Result<std::vector<GenerateResult>> Engine::Generate(std::span<const GenerateRequest> requests) {
  return Generate(requests, std::vector<RequestCallbacks>(requests.size()));
}

Result<std::vector<GenerateResult>> Engine::Generate(std::span<const GenerateRequest> requests,
                                                     std::span<const RequestCallbacks> callbacks) {
  if (state_->is_own_thread()) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: Generate waits for the engine's thread, so a callback cannot call it");
  }
  if (callbacks.size() != requests.size()) {
    return Fail(ErrorCode::kInvalidArgument,
                "engine: expected as many callbacks as requests ({}), got {}", requests.size(),
                callbacks.size());
  }
  if (requests.empty()) return std::vector<GenerateResult>();
  for (const GenerateRequest& request : requests) {
    KVICK_RETURN_IF_ERROR(state_->batcher->Check(request));
  }
  Results results(requests);
  std::vector<NewRequest> all;
  for (size_t i = 0; i < requests.size(); ++i) {
    RequestCallbacks own = callbacks[i];
    own.on_finish = [&results, i, also = callbacks[i].on_finish](GenerateResult result) {
      if (also) also(result);
      results.Put(i, std::move(result));
    };
    all.push_back({{}, requests[i], std::move(own), {}});
  }
  KVICK_RETURN_IF_ERROR(state_->Enqueue(std::move(all)));
  return results.Wait();
}

int64_t Engine::context_tokens() const { return state_->batcher->context().tokens; }
bool Engine::context_is_capped() const { return state_->batcher->context().is_capped; }
const KvConfig& Engine::cache_config() const { return state_->batcher->cache().config(); }
std::string Engine::numerics() const { return state_->batcher->runner().numerics(); }
std::string_view Engine::isa() const { return state_->batcher->runner().isa(); }

EngineStats Engine::stats() const {
  if (state_->is_of_parent_process()) return state_->stats;
  const std::lock_guard lock(state_->mutex);
  EngineStats stats = state_->stats;
  for (const NewRequest& r : state_->inbox.requests) stats.num_waiting += r.request.num_samples;
  return stats;
}

}  // namespace kvick
