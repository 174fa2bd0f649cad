#ifndef KVICK_FORMATS_PIECE_TRIE_H_
#define KVICK_FORMATS_PIECE_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/token_index.h"

namespace kvick {

// Finds all pieces that a text begins with, in one walk over its bytes.
class PieceTrie {
 public:
  PieceTrie() = default;
  // Of the pieces with these ids, none of them empty; of equal pieces, the last id counts.
  // Cost  O(bytes of the pieces * log(pieces)); some 12 bytes of memory for each of their bytes
  PieceTrie(std::span<const std::string> pieces, std::vector<int32_t> ids);

  // Calls `visit(num_bytes, id)` for each piece that `text` begins with, the shortest first.
  template <class Visit>
  void ForEachPrefix(std::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) return;
      if (nodes_[node].id != kNoToken) visit(i + 1, nodes_[node].id);
    }
  }

  // The piece that is exactly `text`, or kNoToken.
  int32_t Find(std::string_view text) const;

 private:
  // The children of a node lie side by side, by byte, up to the first child of the next node.
  struct Node {
    uint32_t first_child;
    int32_t id;
    uint8_t byte;
  };

  // 0, the root, where there is none.
  uint32_t Child(uint32_t node, uint8_t byte) const;

  std::vector<Node> nodes_ = {{1, kNoToken, 0}, {1, kNoToken, 0}};  // and one behind the last
};

}  // namespace kvick

#endif  // KVICK_FORMATS_PIECE_TRIE_H_
