#ifndef KVICK_PROVE_REPORT_H_
#define KVICK_PROVE_REPORT_H_

#include <string>

#include "prove/proof.h"

namespace kvick {

// The proof as one HTML page without scripts, which loads nothing from elsewhere. It shows the time
// of a step over its position, reserved and used memory, the effect of each planted bug on a text,
// and every claim with its explanation. It fits light and dark, wide and narrow screens. What was
// not measured is left out.
std::string RenderReport(const Proof& proof);

}  // namespace kvick

#endif  // KVICK_PROVE_REPORT_H_
