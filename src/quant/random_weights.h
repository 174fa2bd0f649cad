#ifndef KVICK_QUANT_RANDOM_WEIGHTS_H_
#define KVICK_QUANT_RANDOM_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "quant/weight_format.h"

namespace kvick {

// RandomNumbers in a weight format. Quantized ones repeat after 2^22 elements: encoding gigabytes
// would take long.
struct RandomWeights {
  WeightType type = WeightType::kF32;
  int64_t num_elements = 0;  // a multiple of the format's block_elements
  double deviation = 1;      // standard
  uint32_t seed = 1;
  int num_threads = 1;

  // Writes WeightBytes(type, num_elements) bytes. `dst` is aligned to the element size.
  void WriteTo(std::byte* dst) const;
};

}  // namespace kvick

#endif  // KVICK_QUANT_RANDOM_WEIGHTS_H_
