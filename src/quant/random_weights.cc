#include "quant/random_weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/random_numbers.h"
#include "base/threads.h"

namespace kvick {
namespace {

constexpr int64_t kTaskElements = int64_t{1} << 16;
constexpr int64_t kPeriodElements = 64 * kTaskElements;

void Encode(const RandomWeights& weights, int64_t num_elements, std::byte* dst) {
  ParallelFor(weights.num_threads, CeilDiv(num_elements, kTaskElements), [&](int64_t task, int) {
    const int64_t begin = task * kTaskElements;
    const int64_t num = std::min(kTaskElements, num_elements - begin);
    std::vector<float> values(static_cast<size_t>(num));
    const uint32_t seed = weights.seed * 64 + static_cast<uint32_t>(task);
    RandomNumbers{DType::kF32, num, weights.deviation, seed, 1}.WriteTo(
        reinterpret_cast<std::byte*>(values.data()));
    EncodeWeights(weights.type, values.data(), num, dst + *WeightBytes(weights.type, begin));
  });
}

}  // namespace

void RandomWeights::WriteTo(std::byte* dst) const {
  const auto num_bytes = WeightBytes(type, num_elements);
  KVICK_CHECK(num_bytes.has_value());
  if (const auto dtype = FormatOf(type).dtype) {
    return RandomNumbers{*dtype, num_elements, deviation, seed, num_threads}.WriteTo(dst);
  }
  Encode(*this, std::min(num_elements, kPeriodElements), dst);
  const int64_t period_bytes = *WeightBytes(type, kPeriodElements);
  ParallelFor(num_threads, CeilDiv(*num_bytes, period_bytes), [&](int64_t period, int) {
    if (period == 0) return;
    const int64_t begin = period * period_bytes;
    std::memcpy(dst + begin, dst, static_cast<size_t>(std::min(period_bytes, *num_bytes - begin)));
  });
}

}  // namespace kvick
