#ifndef KVICK_KV_CACHE_H_
#define KVICK_KV_CACHE_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kvick/kv_layout.h"
#include "kvick/status.h"
#include "kvick/tensor.h"

namespace kvick {

struct KvCacheState;  // for the library's own sources

enum class KvBacking {
  kUpFront,   ///< all pages are backed by Create, which fails if memory is insufficient
  kOnDemand,  ///< a page is backed when it is first written: Create is fast, a write may fail later
};

// What a slot holds before a token is written to it. No result depends on it.
enum class KvFill {
  kAsMapped,  ///< zeros at first, later whatever was written there
  kNan,       ///< bytes 0xff, again after each release, so that a read of an empty slot shows. Slow
};

// The numbers of a cache. They come from the caller: the cache knows no model and no file.
struct KvConfig {
  int64_t num_layers = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;             ///< elements
  DType dtype = DType::kBF16;       ///< bf16, f16 or f32
  int64_t block_tokens = 16;        ///< tokens of a block
  int64_t num_blocks = 0;           ///< at most 2^31 - 1; 0: as many as fit into max_bytes
  int64_t max_bytes = 0;            ///< of keys and values; only used where num_blocks is 0
  int64_t max_sequence_tokens = 0;  ///< 0: no limit but the blocks
  KvBacking backing = KvBacking::kUpFront;
  KvFill fill = KvFill::kAsMapped;

  // The same geometry as a contiguous cache: `batch` blocks of `max_tokens` tokens, one a sequence.
  KvConfig Contiguous(int64_t batch, int64_t max_tokens) const;
};

// Identifies a sequence of one cache. The id of a dropped sequence is never used again.
struct SequenceId {
  int32_t index = -1;
  uint32_t generation = 0;
  auto operator<=>(const SequenceId&) const = default;
};

// All are multiples of the bytes of one token (KvLayout::BytesPerToken).
//
//   empty = reserved - used      capacity = reserved + reusable + free blocks
struct KvUsage {
  int64_t capacity_bytes = 0;  ///< the whole pool: num_blocks * block_tokens tokens
  int64_t reserved_bytes = 0;  ///< blocks that sequences and open plans hold; a shared block once
  int64_t used_bytes = 0;      ///< slots in them that hold a committed token
  int64_t empty_bytes = 0;
  int64_t reusable_bytes = 0;  ///< blocks that only the prefix cache holds: found again, or evicted
};

// What must be equal beside the tokens so that keys and values are equal: the model, the type of
// the cache, the numerics; and who may share with whom. A list of named, typed fields:
//
//   PrefixScope().Text("model", fingerprint).Real("rope_theta", 500000).Text("cache_salt", salt)
//
// Two scopes are equal exactly if they have the same fields in the same order: types, names and
// values (a Real by its bits). Different fields never give the same bytes.
class PrefixScope {
 public:
  PrefixScope& Text(std::string_view name, std::string_view value);
  PrefixScope& Integer(std::string_view name, int64_t value);
  PrefixScope& Real(std::string_view name, double value);
  auto operator<=>(const PrefixScope&) const = default;

 private:
  std::string bytes_;
};

// What CreateSequence would find.
struct PrefixMatch {
  int64_t num_tokens = 0;
  int64_t num_evictable_blocks = 0;  ///< of the matching blocks, those that no sequence holds
};

// Counts since the creation of the cache, except the last two.
//
//   num_indexed_blocks = added - superseded - evicted - detached
struct PrefixStats {
  int64_t tokens_asked = 0;  ///< passed to CreateSequence
  int64_t tokens_hit = 0;    ///< of these, found
  int64_t blocks_added = 0;
  int64_t blocks_superseded = 0;     ///< replaced by a block that begins with the same tokens
  int64_t blocks_evicted = 0;        ///< removed to make room, or by ClearPrefixCache
  int64_t blocks_detached = 0;       ///< given to a sequence that had no room for a copy
  int64_t num_indexed_blocks = 0;    ///< now
  int64_t num_evictable_blocks = 0;  ///< of these, those that no sequence holds
};

// Slots for the next tokens of one sequence. Reserve makes a plan and Commit ends it. A plan that
// is destroyed without Commit gives its blocks back, as if it had never been. It may outlive its
// cache: then every use of it is an error, and its destruction does nothing.
class WritePlan {
 public:
  WritePlan(WritePlan&& other) noexcept = default;
  WritePlan& operator=(WritePlan&& other) noexcept;
  ~WritePlan();

  SequenceId sequence() const { return sequence_; }
  int64_t first_position() const { return first_position_; }
  int64_t num_tokens() const { return num_tokens_; }
  // The position of token i: first_position() + i. RoPE takes its positions from here.
  int64_t position(int64_t i) const { return first_position_ + i; }

 private:
  friend class KvCache;
  WritePlan(std::weak_ptr<KvCacheState> cache, SequenceId sequence, int64_t first_position,
            int64_t num_tokens);

  std::weak_ptr<KvCacheState> cache_;  // none once committed or moved from
  SequenceId sequence_;
  int64_t first_position_;
  int64_t num_tokens_;
  int64_t num_layers_written_ = 0;
};

// Keys and values of many sequences, in blocks of one preallocated piece of memory.
//
//   plan = Reserve(sequence, n)   slots and positions for n tokens; nothing visible has changed
//   Write(plan, layer, k, v)      once for each layer, in ascending order; keys already rotated
//   View(plan)                    what attention reads meanwhile: all tokens up to the new ones
//   Commit(plan)                  the tokens belong to the sequence
//
// Blocks are reference-counted. Fork shares them; the first write to a shared block copies it.
//
//   CachePrefix(sequence, scope, tokens)      new sequences find its full blocks from now on
//   FinishAndCache(sequence, scope, tokens)   the same for all its blocks; the sequence ends
//   CreateSequence(scope, tokens)             a sequence that starts with all cached tokens
//
// Blocks that only the prefix cache holds stay until Reserve needs them. It evicts the block that
// no sequence has held for the longest time, and later blocks of a prefix before earlier ones.
//
// Threads  one thread at a time, except that Write and View of different plans may run in parallel
// Errors   not_found: the sequence was never created, or was dropped;
//          invalid_argument: the sequence has an open plan (methods that change it);
//          invalid_argument: the plan is committed, moved from, or of another cache
class KvCache {
 public:
  // Cost    O(1) with kOnDemand; with kUpFront every page is written
  // Errors  invalid_argument: a number out of range;
  //         exhausted: insufficient memory; the message says how many tokens fit
  static Result<std::unique_ptr<KvCache>> Create(const KvConfig& config);

  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  ~KvCache();

  // As passed to Create, with the actual num_blocks.
  const KvConfig& config() const;
  const KvLayout& layout() const;

  // An empty sequence. Holds no block before its first Reserve.
  SequenceId CreateSequence();
  // A sequence that starts with the longest cached prefix of `tokens`, compared token by token;
  // Length says how long it is. To compute the logits of the last token, pass all but the last.
  // Copies and evicts nothing.
  // Cost    for each block, a binary search among the cached blocks that may follow
  SequenceId CreateSequence(const PrefixScope& scope, std::span<const int32_t> tokens);
  // What CreateSequence would find. Creates, holds and counts nothing.
  PrefixMatch FindPrefix(const PrefixScope& scope, std::span<const int32_t> tokens) const;
  // Slots for the next num_tokens >= 1 tokens. Evicts cached blocks where too few are free. If the
  // last block is part-filled and shared, it is copied; if only the prefix cache shares it and no
  // block is free for the copy, it leaves the prefix cache instead.
  // Cost    O(blocks added), and at most one copied block; allocates nothing up to 65,536 blocks a
  //         sequence
  // Errors  exhausted: too few free and evictable blocks, or more than max_sequence_tokens; nothing
  //         has changed
  Result<WritePlan> Reserve(SequenceId sequence, int64_t num_tokens);
  // Rounds keys and values of the plan's tokens to the type of the cache and stores them.
  //
  // Shapes  k, v [T, K, D], T = plan.num_tokens(), K = num_kv_heads, D = head_dim
  // Types   f32; D contiguous, T and K with any stride
  // Errors  invalid_argument: another shape or type, or not the next layer; nothing is written
  Status Write(WritePlan& plan, int64_t layer, const TensorView& k, const TensorView& v);
  // Errors  invalid_argument: a layer has not been written; the plan is dropped
  Status Commit(WritePlan plan);

  // Removes all tokens from position num_tokens on, and gives back the blocks that held only them.
  // Errors  invalid_argument: num_tokens is negative or more than Length
  Status Truncate(SequenceId sequence, int64_t num_tokens);
  // Truncate(sequence, 0).
  Status Reset(SequenceId sequence);
  // Gives all blocks back and ends the sequence.
  Status Drop(SequenceId sequence);
  // A second sequence with the same tokens, sharing all blocks. Copies no keys and no values.
  Result<SequenceId> Fork(SequenceId sequence);

  // Adds the sequence's full blocks to the prefix cache. If equal blocks are cached already, the
  // sequence and its forks use those instead and free their own: equal tokens are stored once.
  // REQUIRES: the keys and values were computed from `tokens`, in `scope`.
  // Cost    a comparison of all tokens, and a search as in CreateSequence
  // Errors  invalid_argument: not Length tokens, or some of the blocks are cached with other tokens
  //         or in another scope; nothing has changed
  Status CachePrefix(SequenceId sequence, const PrefixScope& scope,
                     std::span<const int32_t> tokens);
  // CachePrefix including the part-filled last block, then Drop. Of two blocks of which one begins
  // with all tokens of the other, the longer stays.
  // Errors  as CachePrefix; the sequence still exists then
  Status FinishAndCache(SequenceId sequence, const PrefixScope& scope,
                        std::span<const int32_t> tokens);
  // Evicts every evictable block.
  void ClearPrefixCache();
  PrefixStats prefix_stats() const;

  // Committed tokens.
  Result<int64_t> Length(SequenceId sequence) const;
  // The committed tokens of a sequence; those and the plan's. Valid until the sequence changes.
  Result<KvView> View(SequenceId sequence) const;
  Result<KvView> View(const WritePlan& plan) const;
  // The blocks of the committed tokens, in order. Valid until the sequence changes.
  Result<std::span<const BlockId>> Blocks(SequenceId sequence) const;

  // Keys or values of one layer as a strided tensor [num_blocks, K, block_tokens, D]. For a
  // contiguous cache that is [batch, K, max_tokens, D], and Blocks() gives a sequence's row.
  // Addresses and strides never change. REQUIRES: 0 <= layer < num_layers.
  MutableTensorView k(int64_t layer);
  MutableTensorView v(int64_t layer);

  // Cost of these: O(1), however large the cache is.
  KvUsage Usage() const;
  int64_t num_free_blocks() const;
  // Blocks that only the prefix cache holds.
  int64_t num_evictable_blocks() const;
  // Blocks that sequences can get: free and evictable ones.
  int64_t num_available_blocks() const;
  int64_t num_sequences() const;

  // Checks every invariant: references, free blocks, tables, lengths, counters, prefixes; with
  // KvFill::kNan also that no empty slot was written. For tests: reads all tables, allocates.
  // Errors  internal
  Status Verify() const;

 private:
  explicit KvCache(std::shared_ptr<KvCacheState> state);
  // Errors: invalid_argument: not an open plan of this cache.
  Status CheckPlan(const WritePlan& plan) const;

  std::shared_ptr<KvCacheState> state_;  // plans refer to it as long as it exists
};

}  // namespace kvick

#endif  // KVICK_KV_CACHE_H_
