#ifndef KVICK_PROVE_PROVER_H_
#define KVICK_PROVE_PROVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kvick/exec.h"
#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/planted_bugs.h"
#include "prove/proof.h"

namespace kvick {

struct ProveOptions {
  int64_t num_tokens = 100;          ///< new tokens of each text, at least 2
  std::optional<PlantedBug> inject;  ///< left planted in the section on answers
  ExecOptions exec{};
  // SHA-256 of the logits of this model, as LogitsHash: lines of "<hash>  <numerics>". Empty:
  // unknown.
  std::string_view recorded_hashes;
  int64_t (*num_allocations)() = nullptr;  ///< heap allocations of the process; null: not counted
  std::function<void(std::string_view title)> on_section;  ///< may be empty
};

// Shows with this model on this machine that the cache changes no answer, that it takes the memory
// that the formula says, and that a step does not slow down; and that each of the four classic bugs
// would be noticed.
// Errors: unsupported: the context is too short; those of running the model. A claim that fails is
// not an error, nor is one that cannot be judged for lack of memory or quiet.
Result<Proof> Prove(const Model& model, const ProveOptions& options);

}  // namespace kvick

#endif  // KVICK_PROVE_PROVER_H_
