#ifndef KVICK_APPS_KVICK_NPY_H_
#define KVICK_APPS_KVICK_NPY_H_

#include <cstdint>
#include <span>
#include <string>

#include "kvick/status.h"

namespace kvick::cli {

// Writes a float32 matrix [num_rows, num_cols] as NumPy's .npy, version 1.0, as WriteFile
// does. Errors: io. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
Status WriteNpy(const std::string& path, std::span<const float> data, int64_t num_cols);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_NPY_H_
