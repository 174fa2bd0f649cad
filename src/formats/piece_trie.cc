#include "formats/piece_trie.h"

#include <algorithm>
#include <utility>

namespace kvick {
namespace {

// Sorted pieces [begin, end) that share their first `depth` bytes.
struct Range {
  size_t begin, end, depth;
};

}  // namespace

PieceTrie::PieceTrie(std::span<const std::string> pieces, std::vector<int32_t> ids) {
  std::ranges::stable_sort(ids, {}, [&](int32_t id) { return std::string_view(pieces[id]); });
  nodes_ = {{0, kNoToken, 0}};
  std::vector<Range> ranges = {{0, ids.size(), 0}};  // of each node, the pieces below it
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    for (; begin < end && pieces[ids[begin]].size() == depth; ++begin) nodes_[node].id = ids[begin];
    while (begin < end) {
      const char byte = pieces[ids[begin]][depth];
      size_t next = begin;
      while (next < end && pieces[ids[next]][depth] == byte) ++next;
      nodes_.push_back({0, kNoToken, static_cast<uint8_t>(byte)});
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
  }
  nodes_.push_back({static_cast<uint32_t>(nodes_.size()), kNoToken, 0});
}

uint32_t PieceTrie::Child(uint32_t node, uint8_t byte) const {
  const auto begin = nodes_.begin() + nodes_[node].first_child;
  const auto end = nodes_.begin() + nodes_[node + 1].first_child;
  const auto child = std::lower_bound(
      begin, end, byte, [](const Node& other, uint8_t wanted) { return other.byte < wanted; });
  if (child == end || child->byte != byte) return 0;
  return static_cast<uint32_t>(child - nodes_.begin());
}

int32_t PieceTrie::Find(std::string_view text) const {
  int32_t found = kNoToken;
  ForEachPrefix(text, [&](size_t num_bytes, int32_t id) {
    if (num_bytes == text.size()) found = id;
  });
  return found;
}

}  // namespace kvick
