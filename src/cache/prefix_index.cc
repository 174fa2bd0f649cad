#include "cache/prefix_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/common_beginning.h"

namespace kvick {
namespace {

bool IsPrefix(std::span<const int32_t> prefix, std::span<const int32_t> tokens) {
  return NumCommonTokens(prefix, tokens) == std::ssize(prefix);
}

}  // namespace

struct PrefixIndex::Node {
  Node* parent = nullptr;              // null: a root
  const PrefixScope* scope = nullptr;  // null: not a root
  BlockId block{-1};
  std::vector<int32_t> tokens;
  Children children;
  std::list<Node>::iterator place;  // its own, in held_ or evictable_
  bool is_evictable = false;
};

bool PrefixIndex::TokensLess::operator()(std::span<const int32_t> a,
                                         std::span<const int32_t> b) const {
  return std::ranges::lexicographical_compare(a, b);
}

PrefixIndex::PrefixIndex(MappedArray<Node*> nodes, int64_t block_tokens)
    : block_tokens_(block_tokens), nodes_(std::move(nodes)) {}
PrefixIndex::PrefixIndex(PrefixIndex&& other) noexcept = default;
PrefixIndex::~PrefixIndex() = default;

Result<PrefixIndex> PrefixIndex::Create(int64_t num_blocks, int64_t block_tokens, Backing backing) {
  KVICK_ASSIGN_OR_RETURN(auto nodes,
                         MappedArray<Node*>::Create("kv cache: prefix index", num_blocks, backing));
  return PrefixIndex(std::move(nodes), block_tokens);
}

template <class Body>
int64_t PrefixIndex::Walk(const PrefixScope& scope, std::span<const int32_t> tokens,
                          Body&& body) const {
  const int64_t num_tokens = std::ssize(tokens);
  int64_t num_hit = 0;
  const Node* node = RootOf(scope);
  while (node != nullptr && num_hit < num_tokens) {
    const int64_t num_wanted = std::min(block_tokens_, num_tokens - num_hit);
    const Match match = LongestPrefix(
        *node, tokens.subspan(static_cast<size_t>(num_hit), static_cast<size_t>(num_wanted)));
    if (match.num_tokens > 0) body(*match.child);
    num_hit += match.num_tokens;
    node = match.num_tokens == block_tokens_ ? match.child : nullptr;
  }
  return num_hit;
}

int64_t PrefixIndex::Find(const PrefixScope& scope, std::span<const int32_t> tokens,
                          std::vector<BlockId>& blocks) {
  const int64_t num_hit =
      Walk(scope, tokens, [&blocks](const Node& node) { blocks.push_back(node.block); });
  counts_.tokens_asked += std::ssize(tokens);
  counts_.tokens_hit += num_hit;
  return num_hit;
}

PrefixMatch PrefixIndex::Peek(const PrefixScope& scope, std::span<const int32_t> tokens) const {
  PrefixMatch match;
  match.num_tokens = Walk(scope, tokens, [&match](const Node& node) {
    if (node.is_evictable) ++match.num_evictable_blocks;
  });
  return match;
}

// In sorted order, the child that shares the longest prefix with the tokens is next to their place.
PrefixIndex::Match PrefixIndex::LongestPrefix(const Node& node, std::span<const int32_t> tokens) {
  Match best;
  const auto consider = [&](const Children::value_type& child) {
    const int64_t num_equal = NumCommonTokens(child.first, tokens);
    if (num_equal > best.num_tokens) best = {child.second, num_equal};
  };
  const auto after = node.children.lower_bound(tokens);
  if (after != node.children.end()) consider(*after);
  if (after != node.children.begin()) consider(*std::prev(after));
  return best;
}

std::optional<size_t> PrefixIndex::FirstConflict(const PrefixScope& scope,
                                                 std::span<const int32_t> tokens,
                                                 std::span<const BlockId> blocks) const {
  const Node* parent = RootOf(scope);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Node* node = NodeOf(blocks[i]);
    if (node == nullptr) return std::nullopt;  // then those behind it are in no node either
    const auto rest = tokens.subspan(i * static_cast<size_t>(block_tokens_));
    const auto common = std::span(node->tokens).first(std::min(node->tokens.size(), rest.size()));
    if (node->parent != parent || !IsPrefix(common, rest)) return i;
    parent = node;
  }
  return std::nullopt;
}

PrefixIndex::Added PrefixIndex::Add(const PrefixScope& scope, std::optional<BlockId> parent_block,
                                    std::span<const int32_t> tokens, BlockId block) {
  KVICK_CHECK(!tokens.empty() && std::ssize(tokens) <= block_tokens_);
  if (!parent_block && !roots_.contains(scope)) {
    const auto [entry, is_new] = roots_.emplace(scope, std::make_unique<Node>());
    entry->second->scope = &entry->first;
  }
  Node& parent = parent_block ? *NodeOf(*parent_block) : *roots_.find(scope)->second;
  KVICK_CHECK(!parent_block ||
              (!parent.is_evictable && std::ssize(parent.tokens) == block_tokens_));
  const auto after = parent.children.lower_bound(tokens);
  if (after != parent.children.end() && IsPrefix(tokens, after->first)) {
    const Node& known = *after->second;
    if (known.is_evictable)
      evictable_.splice(evictable_.end(), evictable_, known.place);  // used once more
    return {known.block, std::nullopt};
  }
  // A prefix of the tokens stands right before them: whatever stood between would begin with it.
  Node* shorter = nullptr;
  if (after != parent.children.begin() && IsPrefix(std::prev(after)->first, tokens)) {
    shorter = std::prev(after)->second;
  }
  if (shorter != nullptr && shorter->block == block) {
    auto entry = parent.children.extract(shorter->tokens);
    shorter->tokens.assign(tokens.begin(), tokens.end());
    entry.key() = shorter->tokens;
    parent.children.insert(std::move(entry));
    return {block, std::nullopt};
  }
  Insert(parent, tokens, block);
  if (shorter == nullptr) return {block, std::nullopt};
  const BlockId superseded = shorter->block;
  Remove(*shorter);
  ++counts_.blocks_superseded;
  return {block, superseded};
}

int64_t PrefixIndex::NumTokens(BlockId block) const {
  const Node* node = NodeOf(block);
  return node == nullptr ? 0 : std::ssize(node->tokens);
}

void PrefixIndex::Hold(BlockId block) {
  Node& node = *NodeOf(block);
  if (!node.is_evictable) return;
  held_.splice(held_.end(), evictable_, node.place);
  node.is_evictable = false;
}

void PrefixIndex::MarkEvictable(BlockId block) {
  Node& node = *NodeOf(block);
  KVICK_CHECK(!node.is_evictable);
  evictable_.splice(evictable_.end(), held_, node.place);
  node.is_evictable = true;
}

BlockId PrefixIndex::Evict() {
  KVICK_CHECK(!evictable_.empty());
  const BlockId block = evictable_.front().block;
  Remove(evictable_.front());
  ++counts_.blocks_evicted;
  return block;
}

void PrefixIndex::Detach(BlockId block) {
  Remove(*NodeOf(block));
  ++counts_.blocks_detached;
}

PrefixStats PrefixIndex::stats() const {
  PrefixStats stats = counts_;
  stats.num_indexed_blocks = num_nodes();
  stats.num_evictable_blocks = num_evictable();
  return stats;
}

const PrefixIndex::Node* PrefixIndex::RootOf(const PrefixScope& scope) const {
  const auto root = roots_.find(scope);
  return root == roots_.end() ? nullptr : root->second.get();
}

void PrefixIndex::Insert(Node& parent, std::span<const int32_t> tokens, BlockId block) {
  KVICK_CHECK(NodeOf(block) == nullptr);
  Node& node = held_.emplace_back();
  node.parent = &parent;
  node.block = block;
  node.tokens.assign(tokens.begin(), tokens.end());
  node.place = std::prev(held_.end());
  parent.children.emplace(node.tokens, &node);
  nodes_[static_cast<int64_t>(block)] = &node;
  ++counts_.blocks_added;
}

// A root without children goes with the last of them.
void PrefixIndex::Remove(Node& node) {
  KVICK_CHECK(node.children.empty());
  Node& parent = *node.parent;
  parent.children.erase(node.tokens);
  nodes_[static_cast<int64_t>(node.block)] = nullptr;
  (node.is_evictable ? evictable_ : held_).erase(node.place);  // destroys the node
  if (parent.scope != nullptr && parent.children.empty()) roots_.erase(roots_.find(*parent.scope));
}

Status PrefixIndex::VerifyPath(std::span<const BlockId> blocks) const {
  const Node* parent = nullptr;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Node* node = NodeOf(blocks[i]);
    const bool follows = i == 0 ? node == nullptr || node->parent->scope != nullptr
                                : node == nullptr || node->parent == parent;
    if (!follows || (node != nullptr && node->is_evictable)) {
      return Fail(ErrorCode::kInternal, "prefix index: entry {} of a table is {}", i,
                  follows ? "evictable" : "not a child of the entry before it");
    }
    parent = node;
  }
  return {};
}

Status PrefixIndex::Verify() const {
  for (int64_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] == nullptr) continue;
    if (nodes_[i]->block != static_cast<BlockId>(i)) {
      return Fail(ErrorCode::kInternal, "prefix index: block {} is in the node of another", i);
    }
    KVICK_RETURN_IF_ERROR(VerifyNode(*nodes_[i]));
  }
  for (const auto& [scope, root] : roots_) {
    if (root->children.empty() || root->scope != &scope) {
      return Fail(ErrorCode::kInternal, "prefix index: a root is empty or under a wrong name");
    }
    KVICK_RETURN_IF_ERROR(VerifyChildren(*root));
  }
  KVICK_RETURN_IF_ERROR(VerifyCounts());
  return VerifyOrder();
}

Status PrefixIndex::VerifyCounts() const {
  int64_t num_there = 0, num_children = 0;
  for (int64_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] == nullptr) continue;
    ++num_there;
    num_children += std::ssize(nodes_[i]->children);
  }
  for (const auto& [scope, root] : roots_) num_children += std::ssize(root->children);
  const int64_t num_left = counts_.blocks_added - counts_.blocks_superseded -
                           counts_.blocks_evicted - counts_.blocks_detached;
  if (num_there == num_nodes() && num_children == num_nodes() && num_left == num_nodes()) {
    return {};
  }
  return Fail(ErrorCode::kInternal,
              "prefix index: {} nodes are listed, {} there, {} below others, {} by the counts",
              num_nodes(), num_there, num_children, num_left);
}

Status PrefixIndex::VerifyNode(const Node& node) const {
  const int64_t num_tokens = std::ssize(node.tokens);
  if (num_tokens < 1 || num_tokens > block_tokens_ ||
      (!node.children.empty() && num_tokens < block_tokens_)) {
    return Fail(ErrorCode::kInternal, "prefix index: a node of {} tokens has {} children",
                num_tokens, node.children.size());
  }
  const auto child = node.parent->children.find(node.tokens);
  if (child == node.parent->children.end() || child->second != &node) {
    return Fail(ErrorCode::kInternal, "prefix index: a node is not among its parent's children");
  }
  return VerifyChildren(node);
}

Status PrefixIndex::VerifyChildren(const Node& node) const {
  const std::span<const int32_t>* before = nullptr;
  for (const auto& [tokens, child] : node.children) {
    if (tokens.data() != child->tokens.data() || tokens.size() != child->tokens.size() ||
        child->parent != &node) {
      return Fail(ErrorCode::kInternal, "prefix index: a child is listed under other tokens");
    }
    if (before != nullptr && (!TokensLess()(*before, tokens) || IsPrefix(*before, tokens))) {
      return Fail(ErrorCode::kInternal,
                  "prefix index: siblings are unsorted, or one begins as the whole other");
    }
    before = &tokens;
  }
  return {};
}

// Each node is once in the list that it says; of evictable ones children come first.
Status PrefixIndex::VerifyOrder() const {
  std::vector<bool> came_before(static_cast<size_t>(nodes_.size()));
  const auto verify = [&](const Node& node, bool is_evictable) -> Status {
    const auto block = static_cast<size_t>(node.block);
    if (NodeOf(node.block) != &node || node.is_evictable != is_evictable || came_before[block]) {
      return Fail(ErrorCode::kInternal, "prefix index: a block is in the wrong list, or twice");
    }
    came_before[block] = true;
    for (const auto& [tokens, child] : node.children) {
      if (is_evictable && !came_before[static_cast<size_t>(child->block)]) {
        return Fail(ErrorCode::kInternal, "prefix index: a node would be evicted before its child");
      }
    }
    return {};
  };
  for (const Node& node : evictable_) KVICK_RETURN_IF_ERROR(verify(node, true));
  for (const Node& node : held_) KVICK_RETURN_IF_ERROR(verify(node, false));
  return {};
}

}  // namespace kvick
