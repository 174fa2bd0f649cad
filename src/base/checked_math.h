#ifndef KVICK_BASE_CHECKED_MATH_H_
#define KVICK_BASE_CHECKED_MATH_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace kvick {

// The product of non-negative factors, or nullopt where it does not fit 63 bits.
inline std::optional<int64_t> CheckedProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

// a + b for non-negative numbers, or nullopt where it does not fit 63 bits.
inline std::optional<int64_t> CheckedSum(int64_t a, int64_t b) {
  int64_t sum;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// REQUIRES: a >= 0, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
// REQUIRES: the result fits.
constexpr int64_t RoundUp(int64_t a, int64_t multiple) { return CeilDiv(a, multiple) * multiple; }
constexpr int64_t RoundDown(int64_t a, int64_t multiple) { return a / multiple * multiple; }

}  // namespace kvick

#endif  // KVICK_BASE_CHECKED_MATH_H_
