#ifndef KVICK_BASE_EXEC_H_
#define KVICK_BASE_EXEC_H_

#include <string_view>

#include "base/isa.h"
#include "kvick/status.h"

namespace kvick {

// How a computation is carried out. The bits of a result depend on `isa` and never on the rest.
struct Exec {
  Isa isa = Isa::kScalar;
  int num_threads = 1;
};

// From what callers give: an isa by name, "auto" for the best; 0 threads for all usable cores.
// Errors: as ParseIsa; invalid_argument: num_threads is not in [0, 1024].
Result<Exec> MakeExec(std::string_view isa_name, int num_threads);

}  // namespace kvick

#endif  // KVICK_BASE_EXEC_H_
