#ifndef KVICK_BASE_RANDOM_NUMBERS_H_
#define KVICK_BASE_RANDOM_NUMBERS_H_

#include <cstddef>
#include <cstdint>

#include "kvick/tensor.h"

namespace kvick {

// Numbers for measurements: which ones matters little, and making gigabytes of them must not take
// long. Uniform, of mean 0, the same for a seed on any number of threads.
struct RandomNumbers {
  DType dtype = DType::kF32;
  int64_t num_elements = 0;
  double deviation = 1;  // standard
  uint32_t seed = 1;
  int num_threads = 1;

  // Writes num_elements * DTypeBytes(dtype) bytes. `dst` is aligned to the element size.
  void WriteTo(std::byte* dst) const;
};

}  // namespace kvick

#endif  // KVICK_BASE_RANDOM_NUMBERS_H_
