#ifndef KVICK_CACHE_PREFIX_INDEX_H_
#define KVICK_CACHE_PREFIX_INDEX_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mapped_array.h"
#include "base/memory.h"
#include "kvick/kv_cache.h"
#include "kvick/kv_layout.h"

namespace kvick {

// Which block holds the keys and values of which tokens: a tree of blocks for each scope. The path
// from a root to a node spells the beginning of a sequence; the node is its next 1 .. block_tokens
// tokens.
//
// Invariants
//   a block is in at most one node; inner nodes are full
//   no node's tokens are a prefix of its sibling's: of two equal blocks one is here
//   the ancestors of a node that a sequence holds are held too. So in evictable_, sorted by the
//   time of release, a node comes before its ancestors, and the first one is always a leaf
//
// Counts no references: the caller says which nodes a sequence holds and which are evictable. A new
// node is held. Holding, releasing and removing nodes allocates nothing. Lookups compare tokens in
// sorted order: no input can make them slow by collisions of a hash.
class PrefixIndex {
 public:
  // Errors  exhausted: less memory than the table needs
  static Result<PrefixIndex> Create(int64_t num_blocks, int64_t block_tokens, Backing backing);

  PrefixIndex(PrefixIndex&& other) noexcept;
  PrefixIndex& operator=(PrefixIndex&& other) = delete;
  ~PrefixIndex();

  // Appends the blocks that hold the longest known prefix of `tokens` and returns its length in
  // tokens. It may end inside the last block. Cost: for each block, a binary search of the
  // children.
  int64_t Find(const PrefixScope& scope, std::span<const int32_t> tokens,
               std::vector<BlockId>& blocks);

  // What Find would find, without a change of the statistics.
  PrefixMatch Peek(const PrefixScope& scope, std::span<const int32_t> tokens) const;

  // The first of a sequence's blocks that is in a node of other tokens or of another scope;
  // nullopt: each of them may be added.
  std::optional<size_t> FirstConflict(const PrefixScope& scope, std::span<const int32_t> tokens,
                                      std::span<const BlockId> blocks) const;

  struct Added {
    BlockId block;                      // whose node now begins with the tokens: the new block, or
                                        // one that was there before
    std::optional<BlockId> superseded;  // removed: its tokens were a prefix of the new ones
  };
  // Adds a block below a parent, or below the scope's root. If the block is there already, with
  // fewer tokens, its node gets the new ones. REQUIRES: no conflict; the parent is full and held; 1
  // to block_tokens tokens.
  Added Add(const PrefixScope& scope, std::optional<BlockId> parent,
            std::span<const int32_t> tokens, BlockId block);

  // Whether a block is in a node.
  bool Contains(BlockId block) const { return NodeOf(block) != nullptr; }
  // Tokens of the block's node; 0 if it is in none.
  int64_t NumTokens(BlockId block) const;

  // REQUIRES: the block is in a node.
  void Hold(BlockId block);
  // REQUIRES: the block is in a node; no sequence holds a child.
  void MarkEvictable(BlockId block);
  // Removes the node that no sequence has held for the longest time. REQUIRES: num_evictable() > 0.
  BlockId Evict();
  // Removes a held node, so that its sequence may write to the block. REQUIRES: it has no children.
  void Detach(BlockId block);

  int64_t num_nodes() const { return static_cast<int64_t>(held_.size() + evictable_.size()); }
  int64_t num_evictable() const { return static_cast<int64_t>(evictable_.size()); }
  PrefixStats stats() const;

  // Checks that the blocks of a table that are in nodes are a path from a root. Errors: internal.
  Status VerifyPath(std::span<const BlockId> blocks) const;
  // Checks every invariant that needs no reference counts. Errors: internal.
  Status Verify() const;

 private:
  struct Node;
  PrefixIndex(MappedArray<Node*> nodes, int64_t block_tokens);

  struct TokensLess {
    bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
  };
  // By the child's own tokens.
  using Children = std::map<std::span<const int32_t>, Node*, TokensLess>;
  struct Match {
    Node* child = nullptr;
    int64_t num_tokens = 0;
  };

  // Calls body(node) for each node of the longest known prefix, which may end inside the last one.
  template <class Body>
  int64_t Walk(const PrefixScope& scope, std::span<const int32_t> tokens, Body&& body) const;
  static Match LongestPrefix(const Node& node, std::span<const int32_t> tokens);
  Node* NodeOf(BlockId block) const { return nodes_[static_cast<int64_t>(block)]; }
  const Node* RootOf(const PrefixScope& scope) const;
  void Insert(Node& parent, std::span<const int32_t> tokens, BlockId block);
  void Remove(Node& node);
  Status VerifyCounts() const;
  Status VerifyNode(const Node& node) const;
  Status VerifyChildren(const Node& node) const;
  Status VerifyOrder() const;

  int64_t block_tokens_;
  std::map<PrefixScope, std::unique_ptr<Node>> roots_;
  MappedArray<Node*> nodes_;   // [num_blocks], null where the block is in no node
  std::list<Node> held_;       // by a sequence
  std::list<Node> evictable_;  // the longest without a sequence first
  PrefixStats counts_;         // without what the lists know
};

}  // namespace kvick

#endif  // KVICK_CACHE_PREFIX_INDEX_H_
