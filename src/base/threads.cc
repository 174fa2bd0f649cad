#include "base/threads.h"

#include <sched.h>

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fork_generation.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvick {
namespace internal {
namespace {

// How long a thread looks before it sleeps: about 20 us, some times what lies between two parallel
// loops of a forward pass, and nothing beside a human's pause. A sleeper costs 5 to 50 us to wake.
//
// Why not OpenMP: libgomp spins at its barriers for as long as the environment says, and no call
// can change that. With more threads than free cores each loop then waits for a time slice of the
// scheduler: the exactness tests of attention (2 cores, up to 5 threads) took 94 s, and 9 s here.
constexpr int kSpins = 500;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // takes about as long as the pause of x86; "yield" takes no time
#else
  std::this_thread::yield();
#endif
}

// Returns once `value` is no longer `old`.
template <class T>
void WaitWhile(const std::atomic<T>& value, T old, int num_spins) {
  for (int i = 0; i < num_spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  value.wait(old, std::memory_order_acquire);
}

// One loop that is being carried out.
struct Job {
  ParallelBody body = nullptr;
  void* context = nullptr;
  int64_t num_tasks = 0;
  int num_spins = 0;
  std::atomic<int64_t> next_task{0};
  std::atomic<int> num_working{0};  // workers that have not finished yet

  void Work(int thread) {
    for (int64_t task; (task = next_task.fetch_add(1, std::memory_order_relaxed)) < num_tasks;) {
      body(context, task, thread);
    }
  }
};

// The process's worker threads, started when first needed and asleep while there is nothing to do.
// One loop runs at a time; one that finds the pool busy, or is inside another, runs on its caller.
//
// Never destroyed: objects with static lifetime and other threads use it until the process ends.
class ThreadPool {
 public:
  // The pool of this process. A child of fork() starts its own: the parent's workers do not exist
  // there, and what state they left the parent's pool in is unknown.
  static ThreadPool& Instance() {
    static constinit std::atomic<ThreadPool*> instance{nullptr};
    ThreadPool* pool = instance.load(std::memory_order_acquire);
    if (pool != nullptr && pool->generation_ == ForkGeneration()) return *pool;
    auto* fresh = new ThreadPool;
    if (instance.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;  // another thread was first
    return *pool;
  }

  // False where the pool is busy: nothing has been done.
  bool TryRun(int num_threads, int64_t num_tasks, ParallelBody body, void* context) {
    if (is_running_.exchange(true, std::memory_order_acquire)) return false;
    const int num_workers = Grow(num_threads - 1);
    job_.body = body;
    job_.context = context;
    job_.num_tasks = num_tasks;
    job_.num_spins = num_threads <= NumUsableCores() ? kSpins : 0;
    job_.next_task.store(0, std::memory_order_relaxed);
    job_.num_working.store(num_workers, std::memory_order_relaxed);
    for (int i = 0; i < num_workers; ++i) Call(*workers_[static_cast<size_t>(i)]);
    job_.Work(0);
    for (int left; (left = job_.num_working.load(std::memory_order_acquire)) > 0;) {
      WaitWhile(job_.num_working, left, job_.num_spins);
    }
    is_running_.store(false, std::memory_order_release);
    return true;
  }

 private:
  struct Worker {
    std::atomic<uint32_t> calls{0};  // one more: there is a job for this worker
    std::thread thread;
  };

  static void Call(Worker& worker) {
    worker.calls.fetch_add(1, std::memory_order_release);
    worker.calls.notify_one();
  }

  ThreadPool() = default;
  ~ThreadPool() = default;  // of one that has no workers

  // Starts workers until there are num_workers, or the system refuses. Returns how many take part.
  int Grow(int num_workers) {
    while (static_cast<int>(workers_.size()) < num_workers) {
      auto worker = std::make_unique<Worker>();
      const int thread = static_cast<int>(workers_.size()) + 1;
      try {
        worker->thread = std::thread([this, thread, w = worker.get()] { Serve(*w, thread); });
      } catch (const std::system_error&) {
        return static_cast<int>(workers_.size());
      }
      workers_.push_back(std::move(worker));
    }
    return num_workers;
  }

  void Serve(Worker& worker, int thread) {
    int num_spins = 0;
    for (uint32_t seen = 0;; ++seen) {
      WaitWhile(worker.calls, seen, num_spins);
      num_spins = job_.num_spins;
      job_.Work(thread);
      if (job_.num_working.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        job_.num_working.notify_one();
      }
    }
  }

  std::atomic<bool> is_running_{false};  // no mutex: a loop may be asked for inside another
  const uint32_t generation_ = ForkGeneration();
  Job job_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

void ParallelForImpl(int num_threads, int64_t num_tasks, ParallelBody body, void* context) {
  if (num_threads > 1 && num_tasks > 1 &&
      ThreadPool::Instance().TryRun(num_threads, num_tasks, body, context)) {
    return;
  }
  for (int64_t task = 0; task < num_tasks; ++task) body(context, task, 0);
}

}  // namespace internal

int NumUsableCores() {
  static const int num_cores = [] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return CPU_COUNT(&cores);
    return static_cast<int>(std::thread::hardware_concurrency());
  }();
  return num_cores > 0 ? num_cores : 1;
}

}  // namespace kvick
