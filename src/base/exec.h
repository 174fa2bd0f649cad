#ifndef KVICK_BASE_EXEC_H_
#define KVICK_BASE_EXEC_H_

#include "base/isa.h"

namespace kvick {

// How a computation is carried out. The bits of a result depend on `isa` and never on the rest.
struct Exec {
  Isa isa = Isa::kScalar;
  int num_threads = 1;
};

}  // namespace kvick

#endif  // KVICK_BASE_EXEC_H_
