#include "model/arch/windows.h"

#include "base/check.h"

namespace kvick {
namespace {

constexpr FieldName kWindow{"attention.sliding_window", "sliding_window"};

}  // namespace

Result<int64_t> ReadWindow(const ConfigFields& fields, const ModelSpec& spec, int64_t fallback) {
  const bool is_null = fields.Has(kWindow) && !fields.HasValue(kWindow);
  const IntRange range{.min = fields.gguf() != nullptr ? 0 : 1};
  KVICK_ASSIGN_OR_RETURN(const int64_t window,
                         fields.IntOr(kWindow, range, is_null ? 0 : fallback));
  if (window == 0 || window >= spec.max_positions) return 0;
  return Fail(ErrorCode::kUnsupported, "{}: expected {}at least {} (all positions), got {}{}",
              fields.Label(kWindow), fields.gguf() != nullptr ? "" : "null or ", spec.max_positions,
              window, fields.Has(kWindow) ? "" : " (what a missing key means)");
}

}  // namespace kvick
