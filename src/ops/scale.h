#ifndef KVICK_OPS_SCALE_H_
#define KVICK_OPS_SCALE_H_

#include <span>

#include "base/exec.h"

namespace kvick {

// x[i] *= factor. Types: f32. Cost: one pass; allocates nothing.
void ScaleInPlace(const Exec& exec, std::span<float> x, float factor);

// x[i] = cap * tanh(x[i] / cap): what is far below the cap hardly changes, and nothing passes it.
//
// Types     f32;  cap > 0
// Cost      one pass;  allocates nothing
// Source    arXiv:2408.00118
void SoftCapInPlace(const Exec& exec, std::span<float> x, float cap);

}  // namespace kvick

#endif  // KVICK_OPS_SCALE_H_
