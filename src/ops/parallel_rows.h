#ifndef KVICK_OPS_PARALLEL_ROWS_H_
#define KVICK_OPS_PARALLEL_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"
#include "base/exec.h"
#include "base/flush_subnormals.h"

namespace kvick {

// Calls body(begin, end), with FlushSubnormals, for ranges that together are [0, num_rows). A range
// has about 32 Ki elements: some microseconds of work, which is what waking a thread costs. So one
// decoded token stays on one thread.
template <class Body>
void ParallelRows(const Exec& exec, int64_t num_rows, int64_t row_elements, const Body& body) {
  constexpr int64_t kElementsPerTask = int64_t{1} << 15;
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / row_elements);
  ParallelKernel(exec.num_threads, CeilDiv(num_rows, rows_per_task), [&](int64_t task, int) {
    const int64_t begin = task * rows_per_task;
    body(begin, std::min(begin + rows_per_task, num_rows));
  });
}

// Rows of weights, a multiple of row_multiple, that stay in the L2 cache of a core while all tokens
// use them.
inline int64_t WeightRowsPerTask(int64_t row_bytes, int64_t row_multiple) {
  constexpr int64_t kTaskBytes = int64_t{256} << 10;
  return std::max(row_multiple, kTaskBytes / row_bytes / row_multiple * row_multiple);
}

}  // namespace kvick

#endif  // KVICK_OPS_PARALLEL_ROWS_H_
