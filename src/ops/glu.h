#ifndef KVICK_OPS_GLU_H_
#define KVICK_OPS_GLU_H_

#include <span>

#include "base/exec.h"

namespace kvick {

enum class Activation {
  kSilu,      ///< x / (1 + exp(-x))
  kGeluTanh,  ///< x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
};

// A gated linear unit: gate[i] = activation(gate[i]) * up[i].
//
// Shapes    gate, up: the same number of elements, any shape;  they do not overlap
// Types     f32; right for every finite number: silu(-200) is -0, silu(200) is 200
// Cost      one pass;  allocates nothing
// Source    arXiv:2002.05202; GELU: arXiv:1606.08415
struct GluArgs {
  Activation activation = Activation::kSilu;
  std::span<float> gate;
  std::span<const float> up;
};
void Glu(const Exec& exec, const GluArgs& args);

}  // namespace kvick

#endif  // KVICK_OPS_GLU_H_
