#include "formats/token_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>

#include "base/hash_seed.h"

namespace kvick {
namespace {

uint64_t Hash(std::string_view string) {
  return XXH3_64bits_withSeed(string.data(), string.size(), HashSeed());
}

}  // namespace

TokenIndex::TokenIndex(size_t max_tokens) : slots_(std::bit_ceil(2 * max_tokens + 2)) {}

void TokenIndex::Insert(std::span<const std::string> strings, int32_t id) {
  const uint64_t hash = Hash(strings[id]);
  Slot& slot = slots_[Locate(strings, strings[id], hash)];
  if (slot.id == kNoToken) slot = {hash, id};
}

int32_t TokenIndex::Find(std::span<const std::string> strings, std::string_view string) const {
  return slots_[Locate(strings, string, Hash(string))].id;
}

size_t TokenIndex::Locate(std::span<const std::string> strings, std::string_view string,
                          uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t place = hash & mask;
  while (slots_[place].id != kNoToken &&
         (slots_[place].hash != hash || strings[slots_[place].id] != string)) {
    place = (place + 1) & mask;
  }
  return place;
}

}  // namespace kvick
