#include "model/arch/rope_fields.h"

#include <cmath>

#include "base/fixed_math.h"

namespace kvick {

Result<RopeSpec> ReadRope(const ConfigFields& fields, const Architecture& architecture,
                          const ModelSpec& spec, RopeLayers layers) {
  const auto read = fields.gguf() != nullptr ? ReadGgufRope : ReadHfRope;
  return read(fields, architecture, spec, layers);
}

double YarnMagnitude(double factor, double mscale) {
  return factor > 1.0 ? 0.1 * mscale * FixedLog(factor) + 1.0 : 1.0;
}

double LongRopeMagnitude(double factor, int64_t original_max_positions) {
  if (factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + FixedLog(factor) / FixedLog(static_cast<double>(original_max_positions)));
}

}  // namespace kvick
