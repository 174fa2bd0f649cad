#ifndef KVICK_BASE_EXEC_H_
#define KVICK_BASE_EXEC_H_

#include <string>

#include "base/isa.h"
#include "kvick/exec.h"
#include "kvick/status.h"

namespace kvick {

// How activations meet bf16 weights (docs/numerics.md).
enum class Precision {
  kStandard,  ///< rounded to bf16; for queries, keys and values the sum of two bf16
  kHigh,      ///< always the sum of two bf16
};

// How a computation is carried out. The bits of a result depend on OrderOf(isa) and precision, and
// never on the rest.
struct Exec {
  Isa isa = Isa::kScalar;
  int num_threads = 1;
  Precision precision = Precision::kStandard;
};

// From what callers give. Errors: as ParseIsa; invalid_argument: no such precision, or num_threads
// is not in [0, 1024].
Result<Exec> MakeExec(const ExecOptions& options);
// The other way round: MakeExec(OptionsOf(exec)) is exec. Its strings are literals.
ExecOptions OptionsOf(const Exec& exec);

// The name of all that decides bits, and its version: "canonical-1", "canonical-high-1", "tiles-1",
// "tiles-high-1". A version is a set of bits: whatever changes one of them counts it up.
std::string NumericsName(const Exec& exec);

}  // namespace kvick

#endif  // KVICK_BASE_EXEC_H_
