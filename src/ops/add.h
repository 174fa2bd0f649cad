#ifndef KVICK_OPS_ADD_H_
#define KVICK_OPS_ADD_H_

#include <span>

#include "base/exec.h"

namespace kvick {

// x[i] += scale * y[i], rounded once.
//
// Shapes    x, y: the same number of elements, any shape;  they do not overlap
// Types     f32
// Cost      one pass;  allocates nothing
void AddInPlace(const Exec& exec, std::span<float> x, std::span<const float> y, float scale = 1.0f);

}  // namespace kvick

#endif  // KVICK_OPS_ADD_H_
