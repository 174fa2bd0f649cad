#ifndef KVICK_MODEL_ARCH_WINDOWS_H_
#define KVICK_MODEL_ARCH_WINDOWS_H_

#include <cstdint>

#include "kvick/status.h"
#include "model/arch/config_fields.h"
#include "model/model_spec.h"

namespace kvick {

// The sliding window of a model, in tokens; `fallback` where the key is missing, 0 where it is null
// or as long as all positions, which hides nothing from anybody.
Result<int64_t> ReadWindow(const ConfigFields& fields, const ModelSpec& spec, int64_t fallback);

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_WINDOWS_H_
