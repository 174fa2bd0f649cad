// A long random walk over prefixes, held against a model that cannot be wrong: each sequence is its
// scope and a plain vector of tokens, and what a slot holds is a number made of the scope and all
// tokens up to it. So every read shows a hit in another scope, a stale block, or a wrong beginning.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kvick/kv_cache.h"

namespace kvick {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kLayers = 2, kDim = 2;

struct Text {
  int scope;
  Tokens tokens;
};

struct ModelSequence {
  SequenceId id;
  Text text;
};

// [i]: what the key of position i holds: exact in f32.
std::vector<float> ContentsOf(const Text& text) {
  std::vector<float> contents;
  uint64_t hash = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(text.scope + 1);
  for (const int32_t token : text.tokens) {
    hash = (hash ^ static_cast<uint64_t>(token + 1)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 29;
    contents.push_back(static_cast<float>(hash % 4000000));
  }
  return contents;
}

int64_t NumEqual(const Tokens& a, const Tokens& b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

class PrefixWalk {
 public:
  enum class Forgetting { kNever, kSometimes };
  PrefixWalk(const KvConfig& config, Forgetting forgetting, uint32_t seed)
      : cache_(KvCache::Create(config).value()), forgetting_(forgetting), random_(seed) {}

  void Step() {
    const int operation = Draw(0, 19);
    if (sequences_.empty() || operation < 4) {
      if (sequences_.size() < MaxSequences()) Create();
    } else if (operation < 9) {
      const int num_tokens = Draw(1, 10);
      Append(Pick(), num_tokens);
      if (operation == 8) AppendAllThatFits(Pick());
    } else if (operation == 9) {
      const int num_tokens = Draw(1, 10);
      Abandon(Pick(), num_tokens);
    } else if (operation == 10) {
      Truncate(Pick());
    } else if (operation < 13) {
      Fork();
    } else if (operation < 16) {
      CachePrefix(Pick());
    } else if (operation < 18) {
      FinishAndCache();
    } else if (forgetting_ == Forgetting::kNever || Draw(0, 19) > 0) {
      Drop();
    } else {
      Forget();
    }
  }

  void Check() {
    Verify();
    const KvConfig& config = cache_->config();
    std::set<std::pair<BlockId, int64_t>> filled;
    std::set<BlockId> held;
    for (const ModelSequence& sequence : sequences_) {
      CheckContents(cache_->View(sequence.id).value(), sequence.text);
      const auto blocks = cache_->Blocks(sequence.id).value();
      held.insert(blocks.begin(), blocks.end());
      for (size_t i = 0; i < sequence.text.tokens.size(); ++i) {
        filled.insert({blocks[i / config.block_tokens], i % config.block_tokens});
      }
    }
    const int64_t token_bytes = cache_->layout().BytesPerToken();
    const int64_t block_bytes = cache_->layout().block_stride;
    const KvUsage usage = cache_->Usage();
    ASSERT_EQ(usage.used_bytes, std::ssize(filled) * token_bytes);
    ASSERT_EQ(usage.reserved_bytes, std::ssize(held) * block_bytes);
    ASSERT_EQ(usage.empty_bytes, usage.reserved_bytes - usage.used_bytes);
    ASSERT_EQ(usage.capacity_bytes, usage.reserved_bytes + usage.reusable_bytes +
                                        cache_->num_free_blocks() * block_bytes);
    CheckStats();
  }

  const KvCache& cache() const { return *cache_; }
  int64_t num_exhausted() const { return num_exhausted_; }

 private:
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  ModelSequence& Pick() { return sequences_[Draw(0, static_cast<int>(sequences_.size()) - 1)]; }

  size_t MaxSequences() const {
    return static_cast<size_t>(std::min<int64_t>(6, cache_->config().num_blocks + 1));
  }

  // What a sequence may hold that is alone.
  int64_t MaxTokens() const {
    const KvConfig& config = cache_->config();
    const int64_t num_slots = config.num_blocks * config.block_tokens;
    return config.max_sequence_tokens > 0 ? std::min(num_slots, config.max_sequence_tokens)
                                          : num_slots;
  }

  // Scopes whose fields are the same letters, split in different places.
  static PrefixScope ScopeOf(const Text& text) {
    const std::string letters = "abc";
    return PrefixScope().Text(letters.substr(0, text.scope), letters.substr(text.scope));
  }

  void Verify() {
    const auto verified = cache_->Verify();
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
  }

  void CheckStats() {
    const PrefixStats stats = cache_->prefix_stats();
    ASSERT_EQ(stats.tokens_asked, num_asked_);
    ASSERT_EQ(stats.tokens_hit, num_hit_);
    ASSERT_EQ(stats.num_evictable_blocks, cache_->num_evictable_blocks());
    ASSERT_LE(stats.num_evictable_blocks, stats.num_indexed_blocks);
    ASSERT_EQ(stats.num_indexed_blocks, stats.blocks_added - stats.blocks_superseded -
                                            stats.blocks_evicted - stats.blocks_detached);
    ASSERT_EQ(cache_->num_available_blocks(),
              cache_->num_free_blocks() + cache_->num_evictable_blocks());
  }

  // Few different tokens: beginnings meet often.
  Tokens FreshTokens(int num_tokens) {
    Tokens tokens(num_tokens);
    for (int32_t& token : tokens) token = Draw(0, 9) < 8 ? 0 : Draw(-1, 2);
    return tokens;
  }

  // With nothing evicted, a hit is the longest beginning that was ever made known; else at most.
  void Create() {
    Text text{Draw(0, 2), FreshTokens(Draw(0, 40))};
    if (!known_.empty() && Draw(0, 1)) {
      const auto num_known = static_cast<int>(known_.size());
      text = known_[Draw(std::max(0, num_known - 30), num_known - 1)];
      if (Draw(0, 3) == 0) text.scope = Draw(0, 2);
      const Tokens more = FreshTokens(Draw(0, 3));
      text.tokens.insert(text.tokens.end(), more.begin(), more.end());
    }
    int64_t longest = 0;
    for (const Text& known : known_) {
      if (known.scope == text.scope)
        longest = std::max(longest, NumEqual(known.tokens, text.tokens));
    }
    const int64_t num_free = cache_->num_free_blocks();
    const SequenceId id = cache_->CreateSequence(ScopeOf(text), text.tokens);
    const int64_t num_hit = cache_->Length(id).value();
    const PrefixStats stats = cache_->prefix_stats();
    if (stats.blocks_evicted + stats.blocks_detached == 0) {
      ASSERT_EQ(num_hit, longest);
    }
    ASSERT_LE(num_hit, longest);
    ASSERT_EQ(cache_->num_free_blocks(), num_free);
    num_asked_ += std::ssize(text.tokens);
    num_hit_ += num_hit;
    text.tokens.resize(num_hit);
    sequences_.push_back({id, text});
  }

  // Tokens [plan.first_position(), end) of the text.
  void Write(WritePlan& plan, const Text& text) {
    const std::vector<float> contents = ContentsOf(text);
    std::vector<float> k, v;
    for (int64_t i = 0; i < plan.num_tokens() * kDim; ++i) {
      k.push_back(contents[plan.position(i / kDim)]);
      v.push_back(-k.back());
    }
    const TensorView k_view = DenseF32(k.data(), {plan.num_tokens(), 1, kDim});
    const TensorView v_view = DenseF32(v.data(), {plan.num_tokens(), 1, kDim});
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      ASSERT_TRUE(cache_->Write(plan, layer, k_view, v_view).has_value());
    }
  }

  static void CheckContents(const KvView& view, const Text& text) {
    ASSERT_EQ(view.length, std::ssize(text.tokens));
    const std::vector<float> contents = ContentsOf(text);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (int64_t i = 0; i < view.length; ++i) {
        const auto* key = reinterpret_cast<const float*>(view.Key(layer, 0, i));
        const auto* value = reinterpret_cast<const float*>(view.Value(layer, 0, i));
        for (int64_t d = 0; d < kDim; ++d) {
          ASSERT_EQ(key[d], contents[i]) << "position " << i;
          ASSERT_EQ(value[d], -contents[i]) << "position " << i;
        }
      }
    }
  }

  void Append(ModelSequence& sequence, int num_tokens) {
    const auto before = cache_->prefix_stats();
    const int64_t num_free = cache_->num_free_blocks();
    auto plan = cache_->Reserve(sequence.id, num_tokens);
    if (!plan) {
      ++num_exhausted_;
      const int64_t num_wanted = std::ssize(sequence.text.tokens) + num_tokens;
      ASSERT_EQ(plan.error().code, ErrorCode::kExhausted);
      ASSERT_TRUE(sequences_.size() > 1 || num_wanted > MaxTokens());
      ASSERT_EQ(cache_->num_free_blocks(), num_free);
      ASSERT_EQ(cache_->prefix_stats().num_indexed_blocks, before.num_indexed_blocks);
      return;
    }
    const Tokens tokens = FreshTokens(num_tokens);
    sequence.text.tokens.insert(sequence.text.tokens.end(), tokens.begin(), tokens.end());
    Write(*plan, sequence.text);
    CheckContents(cache_->View(*plan).value(), sequence.text);
    ASSERT_TRUE(cache_->Commit(*std::move(plan)).has_value());
  }

  // Where nothing can be copied any more, what only the prefixes share is taken over.
  void AppendAllThatFits(ModelSequence& sequence) {
    const KvConfig& config = cache_->config();
    if (config.num_blocks > 100) return;
    const int64_t length = std::ssize(sequence.text.tokens);
    const int64_t in_last =
        (config.block_tokens - length % config.block_tokens) % config.block_tokens;
    const int64_t num_tokens = std::min(
        cache_->num_available_blocks() * config.block_tokens + in_last, MaxTokens() - length);
    if (num_tokens > 0) Append(sequence, static_cast<int>(num_tokens));
  }

  // While the plan is open others go on: forks of what it copied from are published, cut and grown.
  void Abandon(ModelSequence& sequence, int num_tokens) {
    auto plan = cache_->Reserve(sequence.id, num_tokens);
    if (!plan) return;
    Text text = sequence.text;
    const Tokens tokens = FreshTokens(num_tokens);
    text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
    Write(*plan, text);
    ModelSequence& other = Pick();
    if (other.id != sequence.id) {
      const int operation = Draw(0, 3);
      if (operation == 0) Truncate(other);
      if (operation == 1) Append(other, Draw(1, 5));
      if (operation >= 2) CachePrefix(other);
    }
    CheckContents(cache_->View(*plan).value(), text);
    Verify();
  }

  void Truncate(ModelSequence& sequence) {
    Tokens& tokens = sequence.text.tokens;
    tokens.resize(Draw(0, static_cast<int>(tokens.size())));
    ASSERT_TRUE(cache_->Truncate(sequence.id, std::ssize(tokens)).has_value());
  }

  void Fork() {
    if (sequences_.size() >= MaxSequences()) return;
    const ModelSequence& parent = Pick();
    sequences_.push_back({cache_->Fork(parent.id).value(), Text(parent.text)});
  }

  void CachePrefix(const ModelSequence& sequence) {
    const auto published =
        cache_->CachePrefix(sequence.id, ScopeOf(sequence.text), sequence.text.tokens);
    ASSERT_TRUE(published.has_value()) << published.error().message;
    Text full = sequence.text;
    full.tokens.resize(full.tokens.size() - full.tokens.size() % cache_->config().block_tokens);
    known_.push_back(full);
  }

  void FinishAndCache() {
    std::swap(Pick(), sequences_.back());
    const auto [id, text] = sequences_.back();
    const auto retired = cache_->FinishAndCache(id, ScopeOf(text), text.tokens);
    ASSERT_TRUE(retired.has_value()) << retired.error().message;
    sequences_.pop_back();
    known_.push_back(text);
  }

  void Drop() {
    std::swap(Pick(), sequences_.back());
    ASSERT_TRUE(cache_->Drop(sequences_.back().id).has_value());
    sequences_.pop_back();
  }

  void Forget() {
    cache_->ClearPrefixCache();
    ASSERT_EQ(cache_->num_evictable_blocks(), 0);
  }

  std::unique_ptr<KvCache> cache_;
  Forgetting forgetting_;
  std::mt19937 random_;
  std::vector<ModelSequence> sequences_;
  std::vector<Text> known_;  // all that was ever published
  int64_t num_asked_ = 0, num_hit_ = 0, num_exhausted_ = 0;
};

KvConfig WalkConfig(int64_t block_tokens, int64_t num_blocks) {
  KvConfig config;
  config.num_layers = kLayers;
  config.num_kv_heads = 1;
  config.head_dim = kDim;
  config.dtype = DType::kF32;
  config.block_tokens = block_tokens;
  config.num_blocks = num_blocks;
  config.fill = KvFill::kNan;
  return config;
}

void TakeSteps(PrefixWalk& walk, int num_steps) {
  for (int step = 0; step < num_steps; ++step) {
    walk.Step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
    walk.Check();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
  }
}

// Small pools: what is rare happens often, and the test says so.
void RunInSmallPool(const KvConfig& config, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << "block_tokens " << config.block_tokens << ", seed " << seed);
  PrefixWalk walk(config, PrefixWalk::Forgetting::kSometimes, seed);
  ASSERT_NO_FATAL_FAILURE(TakeSteps(walk, 2000));
  const PrefixStats stats = walk.cache().prefix_stats();
  EXPECT_GT(stats.tokens_hit, 100);
  EXPECT_GT(stats.blocks_evicted, 20);
  EXPECT_GT(walk.num_exhausted(), 20);
  EXPECT_EQ(stats.blocks_detached > 0, config.block_tokens > 1);  // of 1 none is part-filled
}

TEST(KvCachePrefixWalk, PagedInAnyBlockSize) {
  for (const int64_t block_tokens : {1, 3, 4, 16}) {
    for (const uint32_t seed : {1, 2})
      RunInSmallPool(WalkConfig(block_tokens, 96 / block_tokens), seed);
  }
}

TEST(KvCachePrefixWalk, Contiguous) { RunInSmallPool(WalkConfig(0, 0).Contiguous(5, 40), 3); }

TEST(KvCachePrefixWalk, OneRequest) { RunInSmallPool(WalkConfig(0, 0).Contiguous(1, 40), 4); }

TEST(KvCachePrefixWalk, WithRoomForAllEachHitIsTheLongest) {
  for (const int64_t block_tokens : {1, 4, 7}) {
    PrefixWalk walk(WalkConfig(block_tokens, 3000), PrefixWalk::Forgetting::kNever, 5);
    ASSERT_NO_FATAL_FAILURE(TakeSteps(walk, 600));
    EXPECT_EQ(walk.cache().prefix_stats().blocks_evicted, 0);
    EXPECT_GT(walk.cache().prefix_stats().tokens_hit, 500);
    EXPECT_EQ(walk.cache().prefix_stats().blocks_superseded > 0, block_tokens > 1);
  }
}

}  // namespace
}  // namespace kvick
