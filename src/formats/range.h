#ifndef KVICK_FORMATS_RANGE_H_
#define KVICK_FORMATS_RANGE_H_

#include <cstdint>
#include <limits>
#include <string_view>

#include "kvick/status.h"

namespace kvick {

// Closed intervals of what a number in a file may be.
struct IntRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};
struct FloatRange {
  double min, max;
};

// Errors: corrupt: "LABEL: expected MIN to MAX, got VALUE". NaN is out of every range.
Status CheckRange(std::string_view label, int64_t value, IntRange range);
Status CheckRange(std::string_view label, double value, FloatRange range);

}  // namespace kvick

#endif  // KVICK_FORMATS_RANGE_H_
