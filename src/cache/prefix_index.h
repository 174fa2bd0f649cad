#ifndef KVICK_CACHE_PREFIX_INDEX_H_
#define KVICK_CACHE_PREFIX_INDEX_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/kv_layout.h"

namespace kvick {

// Which block holds the keys and values of which tokens: for each scope a tree of blocks. The path
// from a root to a node is the beginning of some text, and a node its next 1 .. block_tokens
// tokens.
//
// Invariants
//   a block is in one node at most; inner nodes are full
//   no node is a beginning of its sibling, so of two equal blocks one is here
//   a held node's ancestors are held: then idle nodes, oldest first, stand before their ancestors,
//   and the oldest is always a leaf
//
// Knows no references: whoever counts them says which nodes are held by a sequence, which idle.
// A node is held when it comes in. Takes nodes out, holds and idles them without allocating.
class PrefixIndex {
 public:
  PrefixIndex(int64_t num_blocks, int64_t block_tokens);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;
  ~PrefixIndex();

  // Appends the blocks that hold the longest known beginning of `tokens`; returns its length. Its
  // end may lie inside the last block. Cost: a binary search of the children a block.
  int64_t Find(const PrefixScope& scope, std::span<const int32_t> tokens,
               std::vector<BlockId>& blocks);

  // What Find would find. Nothing is counted.
  PrefixMatch Peek(const PrefixScope& scope, std::span<const int32_t> tokens) const;

  // The first of a sequence's blocks that is known as something else than the sequence's tokens in
  // that scope. None: each may be added.
  std::optional<size_t> FirstConflict(const PrefixScope& scope, std::span<const int32_t> tokens,
                                      std::span<const BlockId> blocks) const;

  struct Added {
    BlockId block;                      // whose node now begins with the tokens: the new one, or
                                        // the one that did so before
    std::optional<BlockId> superseded;  // whose tokens were a beginning of the new ones: taken out
  };
  // Makes a block known under a parent, or under the scope's root. A block that is in a node of
  // fewer tokens there gets the new ones. REQUIRES: no conflict; the parent is full and held; 1 to
  // block_tokens tokens.
  Added Add(const PrefixScope& scope, std::optional<BlockId> parent,
            std::span<const int32_t> tokens, BlockId block);

  // Whether a block is in a node.
  bool Contains(BlockId block) const { return NodeOf(block) != nullptr; }
  // Slots of a block whose tokens are known: 0 if it is in no node.
  int64_t NumTokens(BlockId block) const;

  // REQUIRES: the block is in a node.
  void Hold(BlockId block);
  // REQUIRES: the block is in a node; none of its children is held.
  void MarkEvictable(BlockId block);
  // Takes out the idle node that has been idle longest. REQUIRES: num_idle() > 0.
  BlockId Evict();
  // Takes out a held node, for its sequence to write on. REQUIRES: it has no children.
  void Detach(BlockId block);

  int64_t num_nodes() const { return static_cast<int64_t>(held_.size() + idle_.size()); }
  int64_t num_idle() const { return static_cast<int64_t>(idle_.size()); }
  PrefixStats stats() const;

  // The blocks of a table that are in nodes are one path from a root. Errors: internal.
  Status VerifyPath(std::span<const BlockId> blocks) const;
  // Every invariant that needs no references. Errors: internal.
  Status Verify() const;

 private:
  struct Node;
  struct TokensLess {
    bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
  };
  // By the child's own tokens.
  using Children = std::map<std::span<const int32_t>, Node*, TokensLess>;
  struct Match {
    Node* child = nullptr;
    int64_t num_tokens = 0;
  };

  // Calls body(node) for each node of the longest known beginning, which may end inside the last.
  template <class Body>
  int64_t Walk(const PrefixScope& scope, std::span<const int32_t> tokens, Body&& body) const;
  static Match LongestBeginning(const Node& node, std::span<const int32_t> tokens);
  Node* NodeOf(BlockId block) const { return nodes_[static_cast<size_t>(block)].get(); }
  const Node* RootOf(const PrefixScope& scope) const;
  void Insert(Node& parent, std::span<const int32_t> tokens, BlockId block);
  void Remove(Node& node);
  Status VerifyCounts() const;
  Status VerifyNode(const Node& node) const;
  Status VerifyChildren(const Node& node) const;
  Status VerifyOrder() const;

  int64_t block_tokens_;
  std::map<PrefixScope, std::unique_ptr<Node>> roots_;
  std::vector<std::unique_ptr<Node>> nodes_;  // [num_blocks]
  std::list<BlockId> held_;
  std::list<BlockId> idle_;  // oldest first
  PrefixStats counts_;       // but for what the lists know
};

}  // namespace kvick

#endif  // KVICK_CACHE_PREFIX_INDEX_H_
