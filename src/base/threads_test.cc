#include "base/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
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

TEST(ParallelFor, NestedLoopsAndCallersSideBySideAllRun) {
  std::atomic<int> runs{0};
  const auto nested = [&] {
    for (int i = 0; i < 50; ++i) {
      ParallelFor(3, 10, [&](int64_t, int) { ParallelFor(3, 4, [&](int64_t, int) { ++runs; }); });
    }
  };
  std::thread other(nested);
  nested();
  other.join();
  EXPECT_EQ(runs, 2 * 50 * 10 * 4);
}

TEST(ParallelFor, WorkersSleepWhenThereIsNothingToDo) {
  ParallelFor(2, 2, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();  // of all threads of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double busy_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy_seconds, 0.05);
}

// A child has none of its parent's workers: waiting for them would take until the alarm.
TEST(ParallelFor, AChildOfForkStartsItsOwnWorkers) {
  ParallelFor(3, 100, [](int64_t, int) {});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int> runs{0};
    for (int i = 0; i < 10; ++i) ParallelFor(3, 100, [&](int64_t, int) { ++runs; });
    _exit(runs == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::atomic<int> runs{0};
  ParallelFor(3, 100, [&](int64_t, int) { ++runs; });
  EXPECT_EQ(runs, 100);
}

TEST(ParallelFor, NoTasksIsNoWork) {
  ParallelFor(4, 0, [](int64_t, int) { FAIL(); });
}

}  // namespace
}  // namespace kvick
