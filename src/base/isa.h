#ifndef KVICK_BASE_ISA_H_
#define KVICK_BASE_ISA_H_

#include <span>
#include <string_view>
#include <vector>

#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// The implementations of the kernels. Each has its own fixed order of operations: bits agree within
// one, and stay within a derived bound of the double-precision reference between two.
enum class Isa {
  kAmx,          ///< bf16 matrix tiles; every other number type as kAvx512
  kAmxEmulated,  ///< software emulation of kAmx: same bits, slow
  kAvx512,
  kAvx2,
  kScalar,  ///< plain C++: runs anywhere
};

// All that are compiled in, best first.
std::span<const Isa> AllIsas();
// Those that this machine can run, best first.
std::vector<Isa> AvailableIsas();

std::string_view IsaName(Isa isa);         // "amx", "amx-emulated", "avx512", "avx2", "scalar"
std::string_view IsaDescription(Isa isa);  // one phrase for people

// Whether this machine and its operating system can run it. Asking for AMX requests the permission
// to use the tile registers from the kernel, once per process.
bool IsaAvailable(Isa isa);

// Whether kernels of that isa put weights, keys and values of that type through matrix tiles.
bool UsesTiles(Isa isa, DType dtype);

// The fastest that is available; never an emulated one.
Isa BestIsa();

// "auto" is BestIsa(). Errors: invalid_argument: no such name; unsupported: not on this machine.
Result<Isa> ParseIsa(std::string_view name);

}  // namespace kvick

#endif  // KVICK_BASE_ISA_H_
