#ifndef KVICK_MEASURE_CPUID_CACHES_H_
#define KVICK_MEASURE_CPUID_CACHES_H_

#include <cstdint>
#include <functional>

namespace kvick {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// The registers of a leaf and a subleaf.
using Cpuid = std::function<CpuidRegisters(uint32_t leaf, uint32_t subleaf)>;

// Bytes of all last-level caches of a machine with so many processors: from leaf 4 (Intel), else
// from leaf 0x8000001D, else from leaf 0x80000006 (both AMD). 0 if none of them tells.
//
// Source  Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID;
//         AMD64 Architecture Programmer's Manual, volume 3, appendix E
int64_t LastLevelCacheBytes(const Cpuid& cpuid, int64_t num_processors);

// That of this processor: zeros for a leaf beyond those that it has. Zeros on other machines.
CpuidRegisters ReadCpuid(uint32_t leaf, uint32_t subleaf);

}  // namespace kvick

#endif  // KVICK_MEASURE_CPUID_CACHES_H_
