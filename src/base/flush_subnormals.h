#ifndef KVICK_BASE_FLUSH_SUBNORMALS_H_
#define KVICK_BASE_FLUSH_SUBNORMALS_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/threads.h"

namespace kvick {

// While it lives, the thread's vector instructions take subnormal inputs as zero and return zero
// for subnormal results, keeping the sign, and round to nearest, ties to even. Sets the control
// register (x86 MXCSR, Arm FPCR) and restores it.
//
// A result is subnormal on x86 if it is after rounding, on Arm if it is before: an exact result
// whose magnitude is in [2^-126 - 2^-151, 2^-126) gives 2^-126 on x86 and zero on Arm.
//
// The bf16 dot product of x86 does so whatever the register says; with it, every instruction does.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() : saved_(_mm_getcsr()) { _mm_setcsr(kMaskExceptions | kFlush); }
  ~FlushSubnormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FlushSubnormals() : saved_(Get()) { Set(kFlush); }
  ~FlushSubnormals() { Set(saved_); }
#else  // no control that is known: subnormals stay what they are
  FlushSubnormals() {}
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint32_t kMaskExceptions = 0x1f80, kFlush = 0x8040;  // FTZ | DAZ
  uint32_t saved_;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ
  static uint64_t Get() {
    uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value) : : "memory");
    return value;
  }
  static void Set(uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
  uint64_t saved_;
#endif
};

// ParallelFor for kernels: the body runs with FlushSubnormals.
template <class Body>
void ParallelKernel(int num_threads, int64_t num_tasks, const Body& body) {
  ParallelFor(num_threads, num_tasks, [&](int64_t task, int thread) {
    const FlushSubnormals flush;
    body(task, thread);
  });
}

}  // namespace kvick

#endif  // KVICK_BASE_FLUSH_SUBNORMALS_H_
