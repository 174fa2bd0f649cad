#ifndef KVICK_PROVE_REPORT_H_
#define KVICK_PROVE_REPORT_H_

#include <string>
#include <string_view>

#include "prove/proof.h"

namespace kvick {

// The proof as one HTML page that needs nothing else: no network, no script. It shows the time of a
// step against its position, reserved against used memory, what each planted bug did to a text, and
// every claim. For light and dark, wide and narrow screens. `made_by` ends the page.
// What was not measured is not drawn.
std::string RenderReport(const Proof& proof, std::string_view made_by);

}  // namespace kvick

#endif  // KVICK_PROVE_REPORT_H_
