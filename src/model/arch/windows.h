#ifndef KVICK_MODEL_ARCH_WINDOWS_H_
#define KVICK_MODEL_ARCH_WINDOWS_H_

#include <cstdint>

#include "kvick/status.h"
#include "model/arch/config_fields.h"
#include "model/model_spec.h"

namespace kvick {

// Gives the window to the layers that layer_types of config.json calls sliding, or else to those of
// which is_sliding says so.
Status SetWindows(const ConfigFields& fields, int64_t window, bool (*is_sliding)(int64_t layer),
                  ModelSpec& spec);

// The sliding window of a model, in tokens; `fallback` where the key is missing, 0 where it is null
// or as long as all positions, which hides nothing from anybody.
Result<int64_t> ReadWindow(const ConfigFields& fields, const ModelSpec& spec, int64_t fallback);

// The windows of Qwen 2 and 3 in config.json.
Status SetQwenWindows(const ConfigFields& fields, ModelSpec& spec);

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_WINDOWS_H_
