#ifndef KVICK_FORMATS_BPE_MERGE_H_
#define KVICK_FORMATS_BPE_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/merge_queue.h"

namespace kvick {

// A piece of the text on its way to become a token: bytes [begin, end).
struct BpeSymbol {
  uint32_t begin;
  uint32_t end;
  int32_t id;  ///< the token, or -1 where the vocabulary has none for these bytes
};

struct BpeMerge {
  double cost;  ///< cheaper merges come first; among equals, the leftmost
  int32_t id;   ///< what the two symbols become
};

// What merging works on. One for all pieces of a text saves allocations.
struct BpeScratch {
  struct Links {
    uint32_t prev, next;
  };
  std::vector<int32_t> tokens;
  std::vector<BpeSymbol> symbols;
  std::vector<Links> links;
  MergeQueue queue;
};

// Byte-pair encoding: joins the cheapest pair of neighbours of `scratch.symbols`, fewer than 2^32,
// until no pair can be joined, in place. `find_merge(left, right)` gives std::optional<BpeMerge>
// for two neighbouring symbols.
//
// Cost      as MergeQueue; some 60 bytes of scratch for each symbol
template <class FindMerge>
void MergeSymbols(BpeScratch& scratch, FindMerge find_merge) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<BpeSymbol>& symbols = scratch.symbols;
  MergeQueue& queue = scratch.queue;
  const auto num_symbols = static_cast<uint32_t>(symbols.size());
  scratch.links.resize(num_symbols);
  queue.Reset(num_symbols);
  const auto propose = [&](uint32_t left, uint32_t right) {
    const BpeSymbol &a = symbols[left], &b = symbols[right];
    if (const std::optional<BpeMerge> merge = find_merge(a, b)) {
      queue.Push({merge->cost, left, b.end - a.begin, merge->id});
    }
  };
  for (uint32_t i = 0; i < num_symbols; ++i) {
    scratch.links[i] = {i == 0 ? kNone : i - 1, i + 1 == num_symbols ? kNone : i + 1};
    if (i > 0) propose(i - 1, i);
  }
  while (!queue.empty()) {
    const MergeQueue::Pair best = queue.Pop();
    BpeSymbol& left = symbols[best.left];
    BpeScratch::Links& link = scratch.links[best.left];
    // A symbol that was joined to its left is empty. Has either of the pair grown, it is longer.
    if (left.begin == left.end || link.next == kNone) continue;
    BpeSymbol& right = symbols[link.next];
    if (right.end - left.begin != best.num_bytes) continue;
    left = {left.begin, right.end, best.id};
    right.begin = right.end;
    link.next = scratch.links[link.next].next;
    if (link.prev != kNone) propose(link.prev, best.left);
    if (link.next != kNone) {
      scratch.links[link.next].prev = best.left;
      propose(best.left, link.next);
    }
  }
  std::erase_if(symbols, [](const BpeSymbol& symbol) { return symbol.begin == symbol.end; });
}

}  // namespace kvick

#endif  // KVICK_FORMATS_BPE_MERGE_H_
