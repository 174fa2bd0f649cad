#include "formats/range.h"

#include "base/check.h"

namespace kvick {
namespace {

template <class T, class Range>
Status Check(std::string_view label, T value, const Range& range) {
  if (value >= range.min && value <= range.max) return {};
  return Fail(ErrorCode::kCorrupt, "{}: expected {} to {}, got {}", label, range.min, range.max,
              value);
}

}  // namespace

Status CheckRange(std::string_view label, int64_t value, IntRange range) {
  return Check(label, value, range);
}

Status CheckRange(std::string_view label, double value, FloatRange range) {
  return Check(label, value, range);
}

}  // namespace kvick
