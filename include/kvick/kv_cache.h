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

enum class KvBacking {
  kUpFront,   ///< every page is backed at creation: what does not fit is said then
  kOnDemand,  ///< pages are backed when first written: starts at once, may fail later
};

// What a slot holds before a token is written to it. Answers never depend on it.
enum class KvFill {
  kAsMapped,  ///< zero at first, then whatever was there
  kNan,       ///< every byte 0xff, again after each release: a read of an empty slot shows. Slow
};

// The numbers of a cache, and nothing else: no model, no file, no command line.
struct KvConfig {
  int64_t num_layers = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;             ///< elements
  DType dtype = DType::kBF16;       ///< bf16, f16 or f32
  int64_t block_tokens = 16;        ///< slots in a block
  int64_t num_blocks = 0;           ///< 0: as many as max_bytes holds
  int64_t max_bytes = 0;            ///< read only where num_blocks is 0
  int64_t max_sequence_tokens = 0;  ///< 0: a sequence may grow until the blocks run out
  KvBacking backing = KvBacking::kUpFront;
  KvFill fill = KvFill::kAsMapped;

  // This geometry as `batch` preallocated requests of `max_tokens` each: one block a request.
  KvConfig Contiguous(int64_t batch, int64_t max_tokens) const;
};

// A sequence's name. Dropping a sequence ends its name; a later one never has it again.
struct SequenceId {
  int32_t index = -1;
  uint32_t generation = 0;
  auto operator<=>(const SequenceId&) const = default;
};

// Each is exactly BytesPerToken() times a number of tokens. empty = reserved - used, and
// capacity = reserved + reusable + what is free.
struct KvUsage {
  int64_t capacity_bytes = 0;  ///< the whole pool: num_blocks * block_tokens tokens
  int64_t reserved_bytes = 0;  ///< blocks that sequences and open plans hold; a shared one once
  int64_t used_bytes = 0;      ///< slots of those that hold a committed token of a sequence
  int64_t empty_bytes = 0;
  int64_t reusable_bytes = 0;  ///< blocks that only the prefixes hold: found again, or evicted
};

// What must be equal, beside the tokens, for keys and values to be equal: the model, its rope, the
// cache's type, the isa, and whoever must not share with others. A list of named, typed fields:
//
//   PrefixScope().Text("model", fingerprint).Real("rope_theta", 500000).Integer("tenant", 7)
//
// Two scopes are equal exactly if their fields are, in number, order, type, name and value (a Real
// by its bits). Fields that are not equal never give the same bytes.
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
  int64_t num_evictable_blocks = 0;  ///< of the blocks that hold them: no sequence does as yet
};

// indexed = added - superseded - evicted - detached. The others count from the cache's creation.
struct PrefixStats {
  int64_t tokens_asked = 0;          ///< in calls of CreateSequence
  int64_t tokens_hit = 0;            ///< of these, those that were known
  int64_t blocks_added = 0;          ///< became known
  int64_t blocks_superseded = 0;     ///< gave way to a block that begins with the same tokens
  int64_t blocks_evicted = 0;        ///< were given up, for room or by ClearPrefixCache
  int64_t blocks_detached = 0;       ///< went to a sequence that had no room for a copy
  int64_t num_indexed_blocks = 0;    ///< are known now
  int64_t num_evictable_blocks = 0;  ///< of these, those that no sequence holds
};

class KvCache;

// Room for the next tokens of one sequence: made by Reserve, ended by Commit. Dropped without
// Commit it gives its blocks back, and nothing has happened. Must not outlive its cache.
class WritePlan {
 public:
  WritePlan(WritePlan&& other) noexcept;
  WritePlan& operator=(WritePlan&& other) noexcept;
  ~WritePlan();

  SequenceId sequence() const { return sequence_; }
  int64_t first_position() const { return first_position_; }
  int64_t num_tokens() const { return num_tokens_; }
  // Token i stands at first_position() + i. RoPE takes its positions from here.
  int64_t position(int64_t i) const { return first_position_ + i; }

 private:
  friend class KvCache;
  WritePlan(KvCache* cache, SequenceId sequence, int64_t first_position, int64_t num_tokens)
      : cache_(cache),
        sequence_(sequence),
        first_position_(first_position),
        num_tokens_(num_tokens) {}

  KvCache* cache_;  // null once committed or moved from
  SequenceId sequence_;
  int64_t first_position_;
  int64_t num_tokens_;
  int64_t num_layers_written_ = 0;
};

// Keys and values of many sequences in blocks of one preallocated, never moving piece of memory.
//
//   plan = Reserve(sequence, n)   room and positions for n tokens; nothing visible has changed
//   Write(plan, layer, k, v)      once for each layer, in ascending order; keys arrive rotated
//   View(plan)                    what attention reads meanwhile: everything up to the new tokens
//   Commit(plan)                  the tokens are there
//
// Blocks are counted references: Fork shares them, and the first write to a shared one copies it.
//
//   CachePrefix(sequence, scope, tokens)    others find its full blocks from now on
//   FinishAndCache(sequence, scope, tokens)     all its blocks, and the sequence ends
//   CreateSequence(scope, tokens)       starts with all that is known of these tokens
//
// Blocks that only these prefixes hold stay until Reserve needs them: then the one that no sequence
// has held for longest goes first, and what follows on a text goes before the text.
//
// Threads   one at a time, but for Write and View of different plans, which may run side by side
// Errors    every method: not_found: no such sequence (never created, or dropped);
//           invalid_argument: the sequence has an open plan (all but const methods)
// Requires  a plan is given to the cache that made it, and not after its Commit
class KvCache {
 public:
  // Errors  invalid_argument: a number that cannot be;
  //         exhausted: the machine cannot give the memory; the message says how many tokens fit
  static Result<std::unique_ptr<KvCache>> Create(const KvConfig& config);

  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  ~KvCache();

  // What was asked for, with num_blocks as it came out.
  const KvConfig& config() const;
  const KvLayout& layout() const;

  // An empty sequence. Holds no block until its first Reserve.
  SequenceId CreateSequence();
  // A sequence that holds the longest known beginning of `tokens`, found by comparing tokens, down
  // to a single one: its Length says how many. Whoever needs the logits of the last token passes
  // all but that one. Copies and evicts nothing.
  // Cost: a binary search a block, among the blocks that are known to follow.
  SequenceId CreateSequence(const PrefixScope& scope, std::span<const int32_t> tokens);
  // The same look, without a sequence: nothing is held, used or counted.
  PrefixMatch FindPrefix(const PrefixScope& scope, std::span<const int32_t> tokens) const;
  // Room for the next num_tokens >= 1 tokens. Where too few blocks are free, evicts. Cost: a table
  // entry a block; one block's copy where the sequence's last block is shared, unless only the
  // prefixes share it and there is no room for a copy: then they give it up. Allocates nothing up
  // to 65,536 blocks a sequence.
  // Errors  exhausted: too few free and evictable blocks, or max_sequence_tokens; nothing has
  //         changed
  Result<WritePlan> Reserve(SequenceId sequence, int64_t num_tokens);
  // Rounds keys and values of the plan's tokens to the cache's type and puts them in their slots.
  //
  // Shapes  k, v [T, K, D], T = plan.num_tokens(), K = num_kv_heads, D = head_dim
  // Types   f32; D without gaps, T and K with any stride
  // Errors  invalid_argument: another shape or type, or not the next layer; nothing is written
  Status Write(WritePlan& plan, int64_t layer, const TensorView& k, const TensorView& v);
  // Errors  invalid_argument: not every layer has been written; the plan is dropped
  Status Commit(WritePlan plan);

  // Cuts the sequence to its first num_tokens tokens. Blocks behind are given back.
  // Errors  invalid_argument: longer than it is
  Status Truncate(SequenceId sequence, int64_t num_tokens);
  // Truncate to nothing.
  Status Reset(SequenceId sequence);
  // Gives the blocks back and ends the name.
  Status Drop(SequenceId sequence);
  // A second sequence with the same tokens, sharing all blocks. Copies no key and no value.
  Result<SequenceId> Fork(SequenceId sequence);

  // Makes a sequence's full blocks known. REQUIRES: `tokens` are what its keys and values were
  // computed from, all in `scope`. Where equal blocks are known already the sequence and its forks
  // take those, and their own are free: the same tokens are stored once.
  // Errors  invalid_argument: another number of tokens than its Length, or some of its blocks are
  //         known as other tokens or in another scope; nothing has changed
  // Cost: a comparison of all tokens; a search as in CreateSequence for each block
  Status CachePrefix(SequenceId sequence, const PrefixScope& scope,
                     std::span<const int32_t> tokens);
  // CachePrefix, the part-filled last block included, and Drop. Of blocks of which one begins with
  // all tokens of the other, the longer stays. Errors: as CachePrefix, and the sequence is still
  // there.
  Status FinishAndCache(SequenceId sequence, const PrefixScope& scope,
                        std::span<const int32_t> tokens);
  // Evicts all that is evictable.
  void ClearPrefixCache();
  PrefixStats prefix_stats() const;

  Result<int64_t> Length(SequenceId sequence) const;
  // All committed tokens of a sequence; with a plan, the plan's tokens as well.
  Result<KvView> View(SequenceId sequence) const;
  KvView View(const WritePlan& plan) const;
  // The blocks of the committed tokens, in order. Valid until the sequence next changes.
  Result<std::span<const BlockId>> Blocks(SequenceId sequence) const;

  // One layer's keys or values as a strided tensor [num_blocks, K, block_tokens, D]; of a
  // contiguous cache: [batch, K, max_tokens, D], where Blocks() tells a sequence's row.
  // Addresses and strides never change. REQUIRES: 0 <= layer < num_layers.
  MutableTensorView k(int64_t layer);
  MutableTensorView v(int64_t layer);

  // Cost: a pass over the tables of all sequences. Allocates nothing.
  KvUsage Usage() const;
  int64_t num_free_blocks() const;
  // Blocks that only the prefixes hold.
  int64_t num_evictable_blocks() const;
  // What sequences can have: free and evictable.
  int64_t num_available_blocks() const;
  int64_t num_sequences() const;

  // Checks every invariant: references, free list, tables, lengths, prefixes; with KvFill::kNan
  // that no empty slot was written. For tests: reads all tables, allocates. Errors: internal.
  Status Verify() const;

 private:
  friend class WritePlan;
  struct State;
  explicit KvCache(std::unique_ptr<State> state);
  void Abandon(const WritePlan& plan);

  std::unique_ptr<State> state_;
};

}  // namespace kvick

#endif  // KVICK_KV_CACHE_H_
