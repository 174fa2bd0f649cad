#ifndef KVICK_FORMATS_BPE_MERGE_H_
#define KVICK_FORMATS_BPE_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace kvick {

// A piece of the text on its way to become a token: bytes [begin, end).
struct BpeSymbol {
  size_t begin;
  size_t end;
  int32_t id;  ///< the token, or -1 where the vocabulary has none for these bytes
};

struct BpeMerge {
  double cost;  ///< cheaper merges come first; among equals, the leftmost
  int32_t id;   ///< what the two symbols become
};

// Byte-pair encoding: joins the cheapest pair of neighbours until no pair can be joined, in place.
// `find_merge(left, right)` gives std::optional<BpeMerge> for two neighbouring symbols.
//
// Cost      O(n log n) for n symbols, whatever they are; some 64 bytes of scratch for each
template <class FindMerge>
void MergeSymbols(std::vector<BpeSymbol>& symbols, FindMerge find_merge) {
  constexpr size_t kNone = SIZE_MAX;
  struct Candidate {
    double cost;
    size_t left, right;
    size_t num_bytes;  // of the pair: has either grown since, the candidate is stale
    int32_t id;

    bool operator<(const Candidate& other) const {  // the top of the queue is the largest
      return std::tie(other.cost, other.left) < std::tie(cost, left);
    }
  };
  struct Links {
    size_t prev, next;
  };
  const size_t num_symbols = symbols.size();
  std::vector<Links> links(num_symbols);
  std::priority_queue<Candidate> queue;
  const auto propose = [&](size_t left, size_t right) {
    const BpeSymbol &a = symbols[left], &b = symbols[right];
    if (const std::optional<BpeMerge> merge = find_merge(a, b)) {
      queue.push({merge->cost, left, right, b.end - a.begin, merge->id});
    }
  };
  for (size_t i = 0; i < num_symbols; ++i) {
    links[i] = {i == 0 ? kNone : i - 1, i + 1 == num_symbols ? kNone : i + 1};
    if (i > 0) propose(i - 1, i);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    BpeSymbol &left = symbols[best.left], &right = symbols[best.right];
    // A symbol that was joined to its left is empty.
    const bool stale = left.begin == left.end || right.begin == right.end ||
                       (left.end - left.begin) + (right.end - right.begin) != best.num_bytes;
    if (stale) continue;
    left = {left.begin, right.end, best.id};
    right.begin = right.end;
    Links& link = links[best.left];
    link.next = links[best.right].next;
    if (link.next != kNone) {
      links[link.next].prev = best.left;
      propose(best.left, link.next);
    }
    if (link.prev != kNone) propose(link.prev, best.left);
  }
  std::erase_if(symbols, [](const BpeSymbol& symbol) { return symbol.begin == symbol.end; });
}

}  // namespace kvick

#endif  // KVICK_FORMATS_BPE_MERGE_H_
