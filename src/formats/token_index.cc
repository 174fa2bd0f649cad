#include "formats/token_index.h"

#include <bit>

#include "base/seeded_hash.h"

namespace kvick {

TokenIndex::TokenIndex(size_t max_tokens) : slots_(std::bit_ceil(2 * max_tokens + 2)) {}

void TokenIndex::Insert(std::span<const std::string> strings, int32_t id) {
  const uint64_t hash = SeededHash(strings[id]);
  Slot& slot = slots_[Locate(strings, strings[id], hash)];
  if (slot.id == kNoToken) slot = {hash, id};
}

int32_t TokenIndex::Find(std::span<const std::string> strings, std::string_view string) const {
  return slots_[Locate(strings, string, SeededHash(string))].id;
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
