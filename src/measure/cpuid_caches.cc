#include "measure/cpuid_caches.h"

#include <algorithm>

#include "base/checked_math.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvick {
namespace {

constexpr uint32_t kIntelCaches = 4, kAmdCaches = 0x8000001D, kAmdCacheSizes = 0x80000006;
constexpr uint32_t kExtendedLeaves = 0x80000000;
constexpr uint32_t kMaxSubleaves = 16;

// Bits [low, low + num_bits).
int64_t Bits(uint32_t value, int low, int num_bits) {
  return (value >> low) & ((uint32_t{1} << num_bits) - 1);
}

struct DescribedCache {
  int64_t level = 0;  // 0: no more caches
  int64_t num_bytes = 0;
  int64_t num_sharing = 1;  // processors at most
};

// Leaves 4 and 0x8000001D have the same fields.
DescribedCache Describe(const CpuidRegisters& registers) {
  constexpr int64_t kInstructions = 2;
  const int64_t type = Bits(registers.eax, 0, 5);
  if (type == 0) return {};
  DescribedCache cache;
  cache.level = Bits(registers.eax, 5, 3);
  cache.num_sharing = Bits(registers.eax, 14, 12) + 1;
  const int64_t line_bytes = Bits(registers.ebx, 0, 12) + 1;
  const int64_t num_partitions = Bits(registers.ebx, 12, 10) + 1;
  const int64_t num_ways = Bits(registers.ebx, 22, 10) + 1;
  const int64_t num_sets = int64_t{registers.ecx} + 1;
  // At most 2^12 * 2^10 * 2^10 * 2^32, which is more than int64 holds: a cache is below 2^40.
  const int64_t line_of_sets = line_bytes * num_partitions * num_ways;
  const bool is_plausible = line_of_sets <= (int64_t{1} << 40) / num_sets;
  if (is_plausible && type != kInstructions) cache.num_bytes = line_of_sets * num_sets;
  return cache;
}

int64_t DescribedBytes(const Cpuid& cpuid, uint32_t leaf, int64_t num_processors) {
  DescribedCache last;
  for (uint32_t i = 0; i < kMaxSubleaves; ++i) {
    const DescribedCache cache = Describe(cpuid(leaf, i));
    if (cache.level == 0) break;
    if (cache.level >= last.level && cache.num_bytes > 0) last = cache;
  }
  return last.num_bytes * CeilDiv(num_processors, last.num_sharing);
}

// Of the third level in all, or else of the second level of each processor.
int64_t LeafOfSizesBytes(const CpuidRegisters& registers, int64_t num_processors) {
  constexpr int64_t kThirdLevelUnit = 512 * 1024, kSecondLevelUnit = 1024;
  const int64_t third_level = Bits(registers.edx, 18, 14) * kThirdLevelUnit;
  if (third_level > 0) return third_level;
  return Bits(registers.ecx, 16, 16) * kSecondLevelUnit * num_processors;
}

}  // namespace

int64_t LastLevelCacheBytes(const Cpuid& cpuid, int64_t num_processors) {
  for (const uint32_t leaf : {kIntelCaches, kAmdCaches}) {
    const int64_t num_bytes = DescribedBytes(cpuid, leaf, num_processors);
    if (num_bytes > 0) return num_bytes;
  }
  return LeafOfSizesBytes(cpuid(kAmdCacheSizes, 0), num_processors);
}

// A processor answers a leaf beyond its last with that of another one.
CpuidRegisters ReadCpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters registers;
#if defined(__x86_64__)
  const uint32_t max_leaf = __get_cpuid_max(leaf & kExtendedLeaves, nullptr);
  if (leaf > max_leaf) return registers;
  __cpuid_count(leaf, subleaf, registers.eax, registers.ebx, registers.ecx, registers.edx);
#else
  static_cast<void>(leaf);
  static_cast<void>(subleaf);
#endif
  return registers;
}

}  // namespace kvick
