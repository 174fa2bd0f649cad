#ifndef KVICK_OPS_OPS_REF_H_
#define KVICK_OPS_OPS_REF_H_

#include <cstdint>
#include <span>

#include "ops/glu.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace kvick {

// The operations in double precision and in the plainest order, as references for the tests.
// The outputs in the args are not written.

// magnitude[t,n] = sum_k |w[n,k] * x[t,k]| + |bias[n]|: rounding errors are in proportion to it.
// Shapes: y, magnitude [T, N].
void LinearRef(const LinearArgs& args, double* y, double* magnitude);

// Shapes: out [T, n].
void RmsNormRef(const RmsNormArgs& args, double* out);

// Rotates by angles [T, R/2] in radians instead of the table. Shapes: out [T, H, D].
void RopeRef(const RopeArgs& args, std::span<const double> angles, double* out);

double ActivationRef(Activation activation, double x);

}  // namespace kvick

#endif  // KVICK_OPS_OPS_REF_H_
