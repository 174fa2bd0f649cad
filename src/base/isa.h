#ifndef KVICK_BASE_ISA_H_
#define KVICK_BASE_ISA_H_

#include <span>
#include <string_view>
#include <vector>

#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

// The implementations of the kernels. All those of one NumericOrder compute the same bits.
enum class Isa {
  kAmx,          ///< bf16 matrix tiles; every other number type as kAvx512
  kAmxEmulated,  ///< software emulation of kAmx: same bits, slow
  kAvx512Bf16,   ///< kAvx512 with the bf16 dot product, VDPBF16PS
  kAvx512,
  kAvx2,
  kNeon,
  kScalar,  ///< plain C++: runs anywhere
};

// The order of the operations of a sum (docs/numerics.md).
enum class NumericOrder {
  kCanonical,  ///< 16 lanes: the same on every machine
  kTiles,      ///< that of bf16 matrix tiles; canonical for every other number type
};

// All that are compiled in, best first.
std::span<const Isa> AllIsas();
// Those that this machine can run, best first.
std::vector<Isa> AvailableIsas();

// "amx", "amx-emulated", "avx512-bf16", "avx512", "avx2", "neon", "scalar"
std::string_view IsaName(Isa isa);
std::string_view IsaDescription(Isa isa);  // one phrase for people

NumericOrder OrderOf(Isa isa);
std::string_view NumericOrderName(NumericOrder order);  // "canonical", "tiles"

// Whether this machine and its operating system can run it. Asking for AMX requests the permission
// to use the tile registers from the kernel, once per process.
bool IsaAvailable(Isa isa);

// Whether kernels of that isa put weights, keys and values of that type through matrix tiles.
bool UsesTiles(Isa isa, DType dtype);

// Whether kernels of that isa have AVX-512's dot product of bytes, VPDPBUSD, on this machine.
bool HasInt8Dot(Isa isa);

// The fastest that is available; never an emulated one.
Isa BestIsa();

// By the names of an order and of an isa. "auto" is any order, and the fastest isa of the order;
// an emulated one only where the order has no other.
// Errors: invalid_argument: no such name, or an isa of another order; unsupported: not on this
// machine.
Result<Isa> ParseIsa(std::string_view name, std::string_view order = "auto");

}  // namespace kvick

#endif  // KVICK_BASE_ISA_H_
