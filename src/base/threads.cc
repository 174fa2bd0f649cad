#include "base/threads.h"

#include <omp.h>

namespace kvick {

int NumUsableCores() { return omp_get_num_procs(); }

namespace internal {

void ParallelForImpl(int num_threads, int64_t num_tasks, ParallelBody body, void* context) {
  if (num_threads <= 1 || num_tasks <= 1) {
    for (int64_t task = 0; task < num_tasks; ++task) body(context, task, 0);
    return;
  }
#pragma omp parallel for num_threads(num_threads) schedule(dynamic)
  for (int64_t task = 0; task < num_tasks; ++task) body(context, task, omp_get_thread_num());
}

}  // namespace internal
}  // namespace kvick
