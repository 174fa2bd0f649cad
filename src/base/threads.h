#ifndef KVICK_BASE_THREADS_H_
#define KVICK_BASE_THREADS_H_

#include <cstdint>
#include <type_traits>

namespace kvick {

// The cores that this process may use: its affinity mask, not the machine's size.
int NumUsableCores();

namespace internal {
using ParallelBody = void (*)(void* context, int64_t task, int thread);
void ParallelForImpl(int num_threads, int64_t num_tasks, ParallelBody body, void* context);
}  // namespace internal

// Calls body(task, thread) once for each task in [0, num_tasks), on up to num_threads threads;
// thread is in [0, num_threads). Returns when all are done. Which thread takes which task is not
// determined: nothing computed may depend on it. The body must not throw. May be called from any
// thread, and from within itself: what finds the other threads busy runs on its caller alone.
// Allocates nothing once there are that many threads.
template <class Body>
void ParallelFor(int num_threads, int64_t num_tasks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  internal::ParallelForImpl(
      num_threads, num_tasks,
      [](void* context, int64_t task, int thread) {
        (*static_cast<Plain*>(context))(task, thread);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace kvick

#endif  // KVICK_BASE_THREADS_H_
