#include "prove/proof.h"

#include <algorithm>

namespace kvick {

bool ProofSection::holds() const {
  return !claims.empty() &&
         std::all_of(claims.begin(), claims.end(), [](const Claim& c) { return c.holds; });
}

Proof::Count Proof::CountClaims() const {
  Count count;
  for (const ProofSection& section : sections) {
    count.all += std::ssize(section.claims);
    count.held += std::ranges::count(section.claims, true, &Claim::holds);
  }
  return count;
}

bool Proof::holds() const {
  return !sections.empty() && std::all_of(sections.begin(), sections.end(),
                                          [](const ProofSection& s) { return s.holds(); });
}

}  // namespace kvick
