#ifndef KVICK_OPS_SWIGLU_H_
#define KVICK_OPS_SWIGLU_H_

#include <span>

#include "base/exec.h"

namespace kvick {

// gate[i] = silu(gate[i]) * up[i],  silu(x) = x / (1 + exp(-x)).
//
// Shapes    gate, up: the same number of elements, any shape;  they do not overlap
// Types     f32; right for every finite number: silu(-200) is -0, silu(200) is 200
// Cost      one pass;  allocates nothing
// Source    arXiv:2002.05202
void SwiGlu(const Exec& exec, std::span<float> gate, std::span<const float> up);

}  // namespace kvick

#endif  // KVICK_OPS_SWIGLU_H_
