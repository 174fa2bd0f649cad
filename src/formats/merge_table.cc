#include "formats/merge_table.h"

#include <bit>

#include "base/seeded_hash.h"

namespace kvick {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t max_merges) : slots_(std::bit_ceil(2 * max_merges + 2)) {}

void MergeTable::Insert(int32_t left, int32_t right, BpeMerge merge, DuplicateMerges duplicates) {
  const uint64_t key = PairKey(left, right);
  Slot& slot = slots_[Locate(key)];
  if (slot.key == key && duplicates == DuplicateMerges::kFirstCounts) return;
  slot = {key, merge};
}

std::optional<BpeMerge> MergeTable::Find(int32_t left, int32_t right) const {
  const Slot& slot = slots_[Locate(PairKey(left, right))];
  if (slot.key == kFree) return std::nullopt;
  return slot.merge;
}

size_t MergeTable::Locate(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t place = SeededHash(key) & mask;
  while (slots_[place].key != kFree && slots_[place].key != key) place = (place + 1) & mask;
  return place;
}

}  // namespace kvick
