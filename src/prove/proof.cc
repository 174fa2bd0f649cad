#include "prove/proof.h"

#include <algorithm>

namespace kvick {

bool ProofSection::holds() const {
  return !claims.empty() &&
         std::all_of(claims.begin(), claims.end(), [](const Claim& c) { return c.holds; });
}

bool Proof::holds() const {
  return !sections.empty() && std::all_of(sections.begin(), sections.end(),
                                          [](const ProofSection& s) { return s.holds(); });
}

}  // namespace kvick
