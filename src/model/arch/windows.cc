#include "model/arch/windows.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

constexpr FieldName kWindow{"attention.sliding_window", "sliding_window"};
constexpr FieldName kLayerTypes{.gguf = {}, .hf = "layer_types"};

}  // namespace

Result<int64_t> ReadWindow(const ConfigFields& fields, const ModelSpec& spec, int64_t fallback) {
  const bool is_null = fields.Has(kWindow) && !fields.HasValue(kWindow);
  const IntRange range{.min = fields.gguf() != nullptr ? 0 : 1};
  KVICK_ASSIGN_OR_RETURN(const int64_t window,
                         fields.IntOr(kWindow, range, is_null ? 0 : fallback));
  return window < spec.max_positions ? window : 0;
}

Status SetWindows(const ConfigFields& fields, int64_t window, bool (*is_sliding)(int64_t layer),
                  ModelSpec& spec) {
  KVICK_ASSIGN_OR_RETURN(const std::vector<std::string> types, fields.StringsOrNone(kLayerTypes));
  if (!types.empty() && types.size() != spec.layers.size()) {
    return Fail(ErrorCode::kCorrupt, "{}: expected {} (a type for each layer), got {}",
                fields.Label(kLayerTypes), spec.layers.size(), types.size());
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    bool has_window = is_sliding(static_cast<int64_t>(i));
    if (!types.empty()) {
      has_window = types[i] == "sliding_attention";
      if (!has_window && types[i] != "full_attention") {
        return Fail(ErrorCode::kUnsupported,
                    "{}: expected \"full_attention\" or \"sliding_attention\", got {}",
                    fields.Label(kLayerTypes), Quoted(types[i]));
      }
    }
    spec.layers[i].window = has_window ? window : 0;
    spec.layers[i].is_sliding = has_window;
  }
  return {};
}

}  // namespace kvick
