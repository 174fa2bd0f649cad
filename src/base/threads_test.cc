#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace kvick {
namespace {

TEST(ParallelFor, RunsEveryTaskOnceWithAThreadInRange) {
  for (int num_threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> runs(1000);
    std::atomic<bool> in_range{true};
    ParallelFor(num_threads, 1000, [&](int64_t task, int thread) {
      ++runs[task];
      if (thread < 0 || thread >= num_threads) in_range = false;
    });
    for (auto& count : runs) ASSERT_EQ(count, 1);
    EXPECT_TRUE(in_range);
  }
}

TEST(ParallelFor, NoTasksIsNoWork) {
  ParallelFor(4, 0, [](int64_t, int) { FAIL(); });
}

}  // namespace
}  // namespace kvick
