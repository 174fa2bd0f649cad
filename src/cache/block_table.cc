#include "cache/block_table.h"

#include <utility>

#include "base/check.h"

namespace kvick {

SequenceId SequenceTable::Create() {
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<int32_t>(places_.size()));
    places_.emplace_back().table.blocks.reserve(static_cast<size_t>(reserved_blocks_));
  }
  const int32_t index = free_places_.back();
  free_places_.pop_back();
  Place& place = places_[static_cast<size_t>(index)];
  place.is_live = true;
  ++num_live_;
  return {index, ++place.generation};
}

void SequenceTable::Drop(SequenceId sequence) {
  const BlockTable* table = Find(sequence);
  KVICK_CHECK(table != nullptr && table->blocks.empty());
  places_[static_cast<size_t>(sequence.index)].is_live = false;
  free_places_.push_back(sequence.index);
  --num_live_;
}

const BlockTable* SequenceTable::Find(SequenceId sequence) const {
  if (sequence.index < 0 || static_cast<size_t>(sequence.index) >= places_.size()) return nullptr;
  const Place& place = places_[static_cast<size_t>(sequence.index)];
  return place.is_live && place.generation == sequence.generation ? &place.table : nullptr;
}

BlockTable* SequenceTable::Find(SequenceId sequence) {
  return const_cast<BlockTable*>(std::as_const(*this).Find(sequence));
}

}  // namespace kvick
