#include "base/isa.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "base/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kvick {
namespace {

constexpr std::array kAllIsas = {
#if defined(__x86_64__)
    Isa::kAmx,    Isa::kAmxEmulated, Isa::kAvx512, Isa::kAvx2,
#endif
    Isa::kScalar,
};

#if defined(__x86_64__)

// Not among the names that clang's __builtin_cpu_supports knows.
bool HasF16c() {
  constexpr unsigned kF16cBit = 1u << 29;  // CPUID 1 ECX
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kF16cBit) != 0;
}

// What Highway's AVX2 and AVX3 targets are compiled for.
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes") && HasF16c();
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

bool RequestTilePermission() {
  constexpr unsigned kBf16Bit = 1u << 22, kTileBit = 1u << 24;  // CPUID 7.0 EDX
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & kBf16Bit) == 0 || (edx & kTileBit) == 0) return false;
  constexpr long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

bool HasAmx() {
  static const bool has_amx = HasAvx512() && RequestTilePermission();
  return has_amx;
}

#else

bool HasAvx2() { return false; }
bool HasAvx512() { return false; }
bool HasAmx() { return false; }

#endif

}  // namespace

std::span<const Isa> AllIsas() { return kAllIsas; }

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return "amx";
    case Isa::kAmxEmulated:
      return "amx-emulated";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kScalar:
      return "scalar";
  }
  return "unknown";
}

std::string_view IsaDescription(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return "bf16 matrix tiles, AVX-512 for other number types";
    case Isa::kAmxEmulated:
      return "software emulation of amx: same bits, slow";
    case Isa::kAvx512:
      return "512-bit vectors";
    case Isa::kAvx2:
      return "256-bit vectors with FMA";
    case Isa::kScalar:
      return "plain C++, runs anywhere";
  }
  return "unknown";
}

bool IsaAvailable(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return HasAmx();
    case Isa::kAmxEmulated:
      return HasAvx512();
    case Isa::kAvx512:
      return HasAvx512();
    case Isa::kAvx2:
      return HasAvx2();
    case Isa::kScalar:
      return true;
  }
  return false;
}

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas;
  std::copy_if(kAllIsas.begin(), kAllIsas.end(), std::back_inserter(isas), IsaAvailable);
  return isas;
}

bool UsesTiles(Isa isa, DType dtype) {
  return dtype == DType::kBF16 && (isa == Isa::kAmx || isa == Isa::kAmxEmulated);
}

Isa BestIsa() {
  for (Isa isa : kAllIsas) {
    if (isa != Isa::kAmxEmulated && IsaAvailable(isa)) return isa;
  }
  return Isa::kScalar;
}

Result<Isa> ParseIsa(std::string_view name) {
  if (name == "auto") return BestIsa();
  std::string names = "auto";
  for (Isa isa : kAllIsas) {
    names.append(", ").append(IsaName(isa));
    if (IsaName(isa) != name) continue;
    if (IsaAvailable(isa)) return isa;
    return Fail(ErrorCode::kUnsupported, "isa {} is not available on this machine, {} is", name,
                IsaName(BestIsa()));
  }
  return Fail(ErrorCode::kInvalidArgument, "no isa is named \"{}\", these are: {}", name, names);
}

}  // namespace kvick
