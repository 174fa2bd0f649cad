#include "base/random_numbers.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/threads.h"

namespace kvick {
namespace {

constexpr int64_t kTaskElements = int64_t{1} << 16;

// Source: Chris Wellons' hash-prospector, lowbias32. Each bit of the result depends on each of x.
uint32_t Mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

}  // namespace

void RandomNumbers::WriteTo(std::byte* dst) const {
  // A number below 2^31 in magnitude, times this, is uniform in sqrt(3) * [-deviation, deviation).
  const auto scale = static_cast<float>(deviation * std::sqrt(3.0) * 0x1p-31);
  ParallelFor(num_threads, CeilDiv(num_elements, kTaskElements), [&](int64_t task, int) {
    const int64_t begin = task * kTaskElements;
    const int64_t end = std::min(begin + kTaskElements, num_elements);
    const uint32_t state = Mix(Mix(seed) + static_cast<uint32_t>(task));
    std::byte* out = dst + begin * DTypeBytes(dtype);
    float values[512];
    for (int64_t i = begin; i < end; i += 512) {
      const int64_t num = std::min<int64_t>(512, end - i);
      for (int64_t j = 0; j < num; ++j) {
        const uint32_t bits = Mix(state + static_cast<uint32_t>(i - begin + j));
        values[j] = scale * static_cast<float>(static_cast<int32_t>(bits));
      }
      ConvertFromF32(dtype, values, num, out + (i - begin) * DTypeBytes(dtype));
    }
  });
}

}  // namespace kvick
