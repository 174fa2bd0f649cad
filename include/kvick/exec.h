#ifndef KVICK_EXEC_H_
#define KVICK_EXEC_H_

#include <string_view>
#include <vector>

namespace kvick {

// How a computation is carried out. Numerics and precision decide the bits of a result; the
// implementation and the number of threads decide how long it takes, and nothing else.
//
//   numerics   "canonical"  one order of operations for every machine
//              "tiles"      the order of Intel's matrix tiles (AMX) where weights, keys and values
//                           are bf16, canonical elsewhere; emulated where there are no tiles
//              "auto"       those of `isa`; if that is "auto" too, those of the fastest
//                           implementation of this machine: tiles with AMX, else canonical
//   precision  "standard"   bf16 weights meet activations rounded to bf16; for queries, keys and
//                           values, to the sum of two bf16
//              "high"       always the sum of two bf16: the multiplications of bf16 weights double
//   isa        a name of KnownIsas(), or "auto": the fastest one that has these numerics
//
// Strings are read during the call that takes them.
struct ExecOptions {
  std::string_view numerics = "auto";
  std::string_view precision = "standard";
  std::string_view isa = "auto";
  int num_threads = 0;  ///< 0: the cores that the process may use; at most 1,024
};

// An implementation of the kernels. All those of the same numerics compute the same bits.
struct IsaInfo {
  std::string_view name;      ///< a value of ExecOptions::isa
  std::string_view numerics;  ///< "canonical" or "tiles"
  std::string_view description;
  bool is_available = false;  ///< on this machine
  bool is_default = false;    ///< what "auto" stands for
};

// All implementations in this library, the fastest first.
std::vector<IsaInfo> KnownIsas();

}  // namespace kvick

#endif  // KVICK_EXEC_H_
