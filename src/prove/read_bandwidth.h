#ifndef KVICK_PROVE_READ_BANDWIDTH_H_
#define KVICK_PROVE_READ_BANDWIDTH_H_

#include "kvick/status.h"

namespace kvick {

// What this machine reads from memory now, in 10^9 bytes a second: the best of some passes over a
// buffer larger than any cache. Cost: 1 GiB for about a second. Errors: exhausted.
Result<double> MeasureReadBandwidth(int num_threads);

}  // namespace kvick

#endif  // KVICK_PROVE_READ_BANDWIDTH_H_
