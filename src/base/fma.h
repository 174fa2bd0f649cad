#ifndef KVICK_BASE_FMA_H_
#define KVICK_BASE_FMA_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace kvick {

// a * b + c, rounded once, by additions and multiplications alone. Under FlushSubnormals subnormal
// operands and results are zeros, as those of the instruction.
//
// In double, the product of two f32 is exact and the sum is rounded to 53 bits. Rounding that to 24
// bits differs from rounding once only if the 29 bits which are dropped say "exactly half": then
// the error of the sum decides the direction.
inline float FmaInSoftware(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  double sum = product + addend;
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kHalf = uint64_t{1} << 28;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if ((bits & kDropped) == kHalf && std::isfinite(sum)) {
    const double of_addend = sum - product;
    const double error = (product - (sum - of_addend)) + (addend - of_addend);
    if (error != 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    sum = std::bit_cast<double>(bits);
  }
  return static_cast<float>(sum);
}

#if defined(__x86_64__)
inline const bool kProcessorHasFma = __builtin_cpu_supports("fma");
#endif

// The same by the processor, where it has the instruction: some five times as fast.
inline float FusedMultiplyAdd(float a, float b, float c) {
#if defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#elif defined(__x86_64__)
  if (kProcessorHasFma) {
    asm("vfmadd231ss %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
  }
#endif
  return FmaInSoftware(a, b, c);
}

}  // namespace kvick

#endif  // KVICK_BASE_FMA_H_
