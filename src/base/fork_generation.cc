#include "base/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace kvick {
namespace {

constinit std::atomic<uint32_t> generation{0};

// Runs in the child of fork(), where little else may be done.
void CountFork() { generation.fetch_add(1, std::memory_order_relaxed); }

// Before main: no thread can be inside of it when another one forks.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, CountFork);

}  // namespace

uint32_t ForkGeneration() { return generation.load(std::memory_order_relaxed); }

}  // namespace kvick
