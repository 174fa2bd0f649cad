#include "base/hash_seed.h"

#include <unistd.h>

#include <chrono>

namespace kvick {
namespace {

uint64_t MakeSeed() {
  uint64_t seed = 0;
  if (getentropy(&seed, sizeof seed) == 0) return seed;
  // Without a source of entropy: the time and a randomized address.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) * 0x9E3779B97F4A7C15u ^ reinterpret_cast<uintptr_t>(&seed);
}

}  // namespace

uint64_t HashSeed() {
  static const uint64_t seed = MakeSeed();
  return seed;
}

}  // namespace kvick
