#include "base/isa.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "base/check.h"
#include "kvick/exec.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kvick {
namespace {

struct KnownIsa {
  Isa isa;
  std::string_view name;
  NumericOrder order;
  std::string_view description;
};

constexpr KnownIsa kKnownIsas[] = {
    {Isa::kAmx, "amx", NumericOrder::kTiles, "bf16 matrix tiles, AVX-512 for other number types"},
    {Isa::kAmxEmulated, "amx-emulated", NumericOrder::kTiles,
     "software emulation of amx: same bits, slow"},
    {Isa::kAvx512Bf16, "avx512-bf16", NumericOrder::kCanonical,
     "512-bit vectors with the dot product of bf16"},
    {Isa::kAvx512, "avx512", NumericOrder::kCanonical, "512-bit vectors"},
    {Isa::kAvx2, "avx2", NumericOrder::kCanonical, "256-bit vectors with FMA"},
    {Isa::kNeon, "neon", NumericOrder::kCanonical, "128-bit vectors of Arm"},
    {Isa::kScalar, "scalar", NumericOrder::kCanonical, "plain C++, runs anywhere"},
};

constexpr std::array kAllIsas = {
#if defined(__x86_64__)
    Isa::kAmx,    Isa::kAmxEmulated, Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2,
#elif defined(__aarch64__)
    Isa::kNeon,
#endif
    Isa::kScalar,
};

const KnownIsa& Known(Isa isa) {
  return *std::ranges::find(kKnownIsas, isa, [](const KnownIsa& known) { return known.isa; });
}

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

bool HasAvx512Bf16() {
  constexpr unsigned kAvx512Bf16Bit = 1u << 5;  // CPUID 7.1 EAX
  unsigned eax, ebx, ecx, edx;
  return HasAvx512() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & kAvx512Bf16Bit) != 0;
}

bool HasAvx512Vnni() {
  constexpr unsigned kAvx512VnniBit = 1u << 11;  // CPUID 7.0 ECX
  unsigned eax, ebx, ecx, edx;
  return HasAvx512() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & kAvx512VnniBit) != 0;
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
bool HasAvx512Bf16() { return false; }
bool HasAvx512Vnni() { return false; }
bool HasAmx() { return false; }

#endif

}  // namespace

std::span<const Isa> AllIsas() { return kAllIsas; }

std::string_view IsaName(Isa isa) { return Known(isa).name; }

std::string_view IsaDescription(Isa isa) { return Known(isa).description; }

NumericOrder OrderOf(Isa isa) { return Known(isa).order; }

std::string_view NumericOrderName(NumericOrder order) {
  return order == NumericOrder::kTiles ? "tiles" : "canonical";
}

bool IsaAvailable(Isa isa) {
  switch (isa) {
    case Isa::kAmx:
      return HasAmx();
    case Isa::kAvx512Bf16:
      return HasAvx512Bf16();
    case Isa::kAmxEmulated:
    case Isa::kAvx512:
      return HasAvx512();
    case Isa::kAvx2:
      return HasAvx2();
    case Isa::kNeon:
      return std::ranges::count(kAllIsas, isa) > 0;  // part of every aarch64 processor
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

bool HasInt8Dot(Isa isa) {
  static const bool has_vnni = HasAvx512Vnni();
  return has_vnni && isa != Isa::kAvx2 && isa != Isa::kNeon && isa != Isa::kScalar;
}

Isa BestIsa() {
  // Asked once: CPUID takes tens of microseconds where a hypervisor answers it.
  static const Isa best = *std::ranges::find_if(
      kAllIsas, [](Isa isa) { return isa != Isa::kAmxEmulated && IsaAvailable(isa); });
  return best;
}

namespace {

Result<Isa> BestIsaOf(std::string_view order) {
  if (order == "auto") return BestIsa();
  for (Isa isa : kAllIsas) {
    if (NumericOrderName(OrderOf(isa)) == order && IsaAvailable(isa)) return isa;
  }
  return Fail(ErrorCode::kUnsupported,
              "numerics: expected canonical, got {}, which needs AMX or, to emulate it, AVX-512",
              order);
}

}  // namespace

Result<Isa> ParseIsa(std::string_view name, std::string_view order) {
  if (order != "auto" && order != "canonical" && order != "tiles") {
    return Fail(ErrorCode::kInvalidArgument,
                "numerics: expected auto, canonical or tiles, got \"{}\"", order);
  }
  if (name == "auto") return BestIsaOf(order);
  std::string names = "auto";
  for (Isa isa : kAllIsas) {
    names.append(", ").append(IsaName(isa));
    if (IsaName(isa) != name) continue;
    const std::string_view order_of_isa = NumericOrderName(OrderOf(isa));
    if (order != "auto" && order != order_of_isa) {
      return Fail(ErrorCode::kInvalidArgument, "numerics of isa {}: expected {}, got {}", name,
                  order_of_isa, order);
    }
    if (IsaAvailable(isa)) return isa;
    return Fail(ErrorCode::kUnsupported,
                "isa: expected one that this machine has, such as {}, got {}", IsaName(BestIsa()),
                name);
  }
  return Fail(ErrorCode::kInvalidArgument, "isa: expected one of {}, got \"{}\"", names, name);
}

std::vector<IsaInfo> KnownIsas() {
  std::vector<IsaInfo> isas;
  for (const Isa isa : AllIsas()) {
    isas.push_back({IsaName(isa), NumericOrderName(OrderOf(isa)), IsaDescription(isa),
                    IsaAvailable(isa), isa == BestIsa()});
  }
  return isas;
}

}  // namespace kvick
