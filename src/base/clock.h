#ifndef KVICK_BASE_CLOCK_H_
#define KVICK_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace kvick {

using Clock = std::chrono::steady_clock;

inline int64_t MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

}  // namespace kvick

#endif  // KVICK_BASE_CLOCK_H_
