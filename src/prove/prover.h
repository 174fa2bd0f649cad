#ifndef KVICK_PROVE_PROVER_H_
#define KVICK_PROVE_PROVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/planted_bugs.h"
#include "prove/proof.h"

namespace kvick {

struct ProveOptions {
  int64_t num_tokens = 100;          ///< new tokens of each text
  std::optional<PlantedBug> inject;  ///< stays planted where answers are proved
  std::string isa = "auto";
  int num_threads = 0;                     ///< 0: the cores that the process may use
  int64_t (*num_allocations)() = nullptr;  ///< of the process so far; null: they are not counted
  std::function<void(std::string_view title)> on_section;  ///< may be empty
};

// Proves on this model and this machine that the cache changes no answer, costs what the formula
// says, and is flat; and that each of the four classic bugs would have been seen.
// Errors: the model cannot be run at all. A claim that does not hold is no error.
Result<Proof> Prove(const Model& model, const ProveOptions& options);

}  // namespace kvick

#endif  // KVICK_PROVE_PROVER_H_
