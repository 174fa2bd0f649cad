#ifndef KVICK_MODEL_ARCH_ROPE_FIELDS_H_
#define KVICK_MODEL_ARCH_ROPE_FIELDS_H_

#include <cstdint>
#include <string_view>

#include "kvick/status.h"
#include "model/arch/architecture.h"
#include "model/arch/config_fields.h"
#include "model/model_spec.h"

namespace kvick {

// Which rope of a model to read, of those that differ by the kind of layer.
enum class RopeLayers {
  kAll,
  kFull,     ///< layers that attend to all tokens
  kSliding,  ///< layers with a window
};

// The rotation of queries and keys. REQUIRES: spec.head_dim and spec.max_positions are set.
// Errors: corrupt: a field missing, of another type or out of range;  unsupported: another scaling.
Result<RopeSpec> ReadRope(const ConfigFields& fields, const Architecture& architecture,
                          const ModelSpec& spec, RopeLayers layers = RopeLayers::kAll);

// Those of one format.
Result<RopeSpec> ReadGgufRope(const ConfigFields& fields, const Architecture& architecture,
                              const ModelSpec& spec, RopeLayers layers);
Result<RopeSpec> ReadHfRope(const ConfigFields& fields, const Architecture& architecture,
                            const ModelSpec& spec, RopeLayers layers);

// The factor on cosines and sines that a model was trained with where its config gives none.
double YarnMagnitude(double factor, double mscale);
double LongRopeMagnitude(double factor, int64_t original_max_positions);

}  // namespace kvick

#endif  // KVICK_MODEL_ARCH_ROPE_FIELDS_H_
