#ifndef KVICK_FORMATS_MERGE_TABLE_H_
#define KVICK_FORMATS_MERGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/bpe_merge.h"

namespace kvick {

enum class DuplicateMerges { kFirstCounts, kLastCounts };

// Finds what two tokens become, and how early. As TokenIndex: flat, at most half full, hashed with
// a random seed.
class MergeTable {
 public:
  explicit MergeTable(size_t max_merges = 0);

  void Insert(int32_t left, int32_t right, BpeMerge merge, DuplicateMerges duplicates);
  std::optional<BpeMerge> Find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = kFree;
    BpeMerge merge{};
  };
  static constexpr uint64_t kFree = UINT64_MAX;  // no pair of ids, which are not negative

  size_t Locate(uint64_t key) const;

  std::vector<Slot> slots_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_MERGE_TABLE_H_
