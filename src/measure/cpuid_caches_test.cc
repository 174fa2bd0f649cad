#include "measure/cpuid_caches.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace kvick {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// What a processor answers; zeros for the rest.
using Table = std::map<std::pair<uint32_t, uint32_t>, CpuidRegisters>;

int64_t BytesOf(const Table& table, int64_t num_processors) {
  const Cpuid cpuid = [&table](uint32_t leaf, uint32_t subleaf) {
    const auto found = table.find({leaf, subleaf});
    return found == table.end() ? CpuidRegisters() : found->second;
  };
  return LastLevelCacheBytes(cpuid, num_processors);
}

struct Cache {
  uint32_t type, level, num_sharing, num_ways, num_sets;
};

// The fields of leaves 4 and 0x8000001D, with lines of 64 bytes.
CpuidRegisters Fields(const Cache& cache) {
  return {cache.type | cache.level << 5 | (cache.num_sharing - 1) << 14,
          63u | (cache.num_ways - 1) << 22, cache.num_sets - 1, 0};
}

constexpr uint32_t kData = 1, kInstructions = 2, kUnified = 3;

// A Xeon: 48 KiB and 32 KiB, 1.25 MiB for two threads, 48 MiB of 12 ways for 64.
TEST(CpuidCaches, Leaf4OfIntel) {
  const Table xeon = {{{4, 0}, Fields({kData, 1, 2, 12, 64})},
                      {{4, 1}, Fields({kInstructions, 1, 2, 8, 64})},
                      {{4, 2}, Fields({kUnified, 2, 2, 20, 1024})},
                      {{4, 3}, Fields({kUnified, 3, 64, 12, 65536})},
                      {{0x80000006, 0}, {0, 0, 0x05007040, 0}}};
  EXPECT_EQ(BytesOf(xeon, 2), 48 * kMiB);
  EXPECT_EQ(BytesOf(xeon, 64), 48 * kMiB);
  EXPECT_EQ(BytesOf(xeon, 128), 2 * 48 * kMiB);
}

// A Zen: 32 MiB of 16 ways for 16 threads. Leaf 4 is reserved there.
TEST(CpuidCaches, Leaf8000001dOfAmd) {
  const Table zen = {{{0x8000001D, 0}, Fields({kData, 1, 2, 12, 64})},
                     {{0x8000001D, 1}, Fields({kInstructions, 1, 2, 8, 64})},
                     {{0x8000001D, 2}, Fields({kUnified, 2, 2, 16, 1024})},
                     {{0x8000001D, 3}, Fields({kUnified, 3, 16, 16, 32768})},
                     {{0x80000006, 0}, {0, 0, 0x04006140, 64u << 18}}};
  EXPECT_EQ(BytesOf(zen, 2), 32 * kMiB);
  EXPECT_EQ(BytesOf(zen, 64), 4 * 32 * kMiB);
}

TEST(CpuidCaches, LeafOfSizesWhereNoOtherTells) {
  const uint32_t second_level = 512u << 16 | 0x6140;  // 512 KiB
  EXPECT_EQ(BytesOf({{{0x80000006, 0}, {0, 0, second_level, 64u << 18 | 0x9140}}}, 8), 32 * kMiB);
  EXPECT_EQ(BytesOf({{{0x80000006, 0}, {0, 0, second_level, 0}}}, 8), 4 * kMiB);
}

TEST(CpuidCaches, NothingWhereNothingTells) { EXPECT_EQ(BytesOf({}, 8), 0); }

TEST(CpuidCaches, NonsenseIsNoCache) {
  const CpuidRegisters ones = {~0u, ~0u, ~0u, ~0u};
  Table table;
  for (uint32_t i = 0; i < 32; ++i) table[{4, i}] = ones;
  EXPECT_EQ(BytesOf(table, 8), 0);
  table[{0x8000001D, 0}] = Fields({kUnified, 2, 1, 16, 1024});
  EXPECT_EQ(BytesOf(table, 8), 8 * kMiB);
}

TEST(CpuidCaches, ThisProcessorAnswers) {
  const CpuidRegisters beyond = ReadCpuid(0x7FFFFFFF, 0);
  EXPECT_EQ(beyond.eax | beyond.ebx | beyond.ecx | beyond.edx, 0u);
#if defined(__x86_64__)
  EXPECT_GE(ReadCpuid(0, 0).eax, 1u);
#endif
}

}  // namespace
}  // namespace kvick
