#include "base/seeded_hash.h"

#include <sys/random.h>

#include <chrono>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvick {
namespace {

uint64_t DrawSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed)) return seed;
  // Early in the boot of a machine: what an attacker can only guess. The address is randomized.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) ^ reinterpret_cast<uintptr_t>(&seed);
}

uint64_t Seed() {
  static const uint64_t seed = DrawSeed();
  return seed;
}

}  // namespace

uint64_t SeededHash(std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), Seed());
}

uint64_t SeededHash(uint64_t key) { return XXH3_64bits_withSeed(&key, sizeof(key), Seed()); }

}  // namespace kvick
