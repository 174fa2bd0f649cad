// Prefixes through the face of the cache: one rule a test. kv_cache_prefix_model_test.cc mixes
// them.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/allocation_counter.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

using Tokens = std::vector<int32_t>;

Tokens Slice(const Tokens& tokens, size_t num) {
  return Tokens(tokens.begin(), tokens.begin() + num);
}

// Keys are the tokens, values their negatives.
class KvCachePrefix : public testing::Test {
 protected:
  void Make(int64_t block_tokens, int64_t num_blocks) {
    KvConfig config;
    config.num_layers = config.num_kv_heads = config.head_dim = 1;
    config.dtype = DType::kF32;
    config.block_tokens = block_tokens;
    config.num_blocks = num_blocks;
    config.fill = KvFill::kNan;
    cache_ = KvCache::Create(config).value();
  }
  void TearDown() override { Verify(); }

  void Verify() {
    const Status verified = cache_->Verify();
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
  }

  void Write(WritePlan& plan, const Tokens& tokens) {
    std::vector<float> k(tokens.begin(), tokens.end()), v;
    for (const float key : k) v.push_back(-key);
    const TensorView k_view = DenseF32(k.data(), {plan.num_tokens(), 1, 1});
    const TensorView v_view = DenseF32(v.data(), {plan.num_tokens(), 1, 1});
    ASSERT_TRUE(cache_->Write(plan, 0, k_view, v_view).has_value());
  }

  void Append(SequenceId sequence, const Tokens& tokens) {
    auto plan = cache_->Reserve(sequence, static_cast<int64_t>(tokens.size()));
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    Write(*plan, tokens);
    ASSERT_TRUE(cache_->Commit(*std::move(plan)).has_value());
    Verify();
  }

  SequenceId CreateWith(const Tokens& tokens) {
    const SequenceId sequence = cache_->CreateSequence();
    Append(sequence, tokens);
    return sequence;
  }

  void FinishAndCache(SequenceId sequence, const Tokens& tokens) {
    const Status retired = cache_->FinishAndCache(sequence, scope_, tokens);
    ASSERT_TRUE(retired.has_value()) << retired.error().message;
    Verify();
  }
  void CachePrefix(SequenceId sequence, const Tokens& tokens) {
    const Status published = cache_->CachePrefix(sequence, scope_, tokens);
    ASSERT_TRUE(published.has_value()) << published.error().message;
    Verify();
  }

  // A sequence with what is known of `tokens`, which must be its first `num_hit`.
  SequenceId Find(const Tokens& tokens, int64_t num_hit) {
    const SequenceId sequence = cache_->CreateSequence(scope_, tokens);
    EXPECT_EQ(cache_->Length(sequence), num_hit);
    ExpectTokens(sequence, Slice(tokens, static_cast<size_t>(num_hit)));
    return sequence;
  }
  void ExpectTokens(SequenceId sequence, const Tokens& tokens) {
    const KvView view = cache_->View(sequence).value();
    ASSERT_EQ(view.length, static_cast<int64_t>(tokens.size()));
    for (int64_t i = 0; i < view.length; ++i) {
      EXPECT_EQ(*reinterpret_cast<const float*>(view.Key(0, 0, i)), tokens[i]);
      EXPECT_EQ(*reinterpret_cast<const float*>(view.Value(0, 0, i)), -tokens[i]);
    }
  }

  const PrefixScope scope_ = PrefixScope().Text("model", "m");
  std::unique_ptr<KvCache> cache_;
};

const Tokens kTen = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

TEST_F(KvCachePrefix, PublishedFullBlocksAreSharedWhileTheirSequenceGoesOn) {
  Make(4, 8);
  const SequenceId first = CreateWith(kTen);
  Find(kTen, 0);
  CachePrefix(first, kTen);
  const SequenceId second = Find(kTen, 8);
  EXPECT_EQ(cache_->View(first)->Key(0, 0, 7), cache_->View(second)->Key(0, 0, 7));
  EXPECT_EQ(cache_->num_free_blocks(), 5);
  EXPECT_EQ(cache_->num_evictable_blocks(), 0);
  Append(second, {19, 20});
  ExpectTokens(first, kTen);
  ASSERT_TRUE(cache_->Drop(first).has_value());
  ASSERT_TRUE(cache_->Drop(second).has_value());
  EXPECT_EQ(cache_->num_evictable_blocks(), 2);
  EXPECT_EQ(cache_->num_available_blocks(), 8);
}

TEST_F(KvCachePrefix, ARetiredSequenceIsFoundToItsLastToken) {
  Make(4, 8);
  FinishAndCache(CreateWith(kTen), kTen);
  EXPECT_EQ(cache_->num_sequences(), 0);
  const KvUsage usage = cache_->Usage();
  const int64_t block_bytes = cache_->layout().block_stride;
  EXPECT_EQ(usage.reserved_bytes, 0);
  EXPECT_EQ(usage.used_bytes, 0);
  EXPECT_EQ(usage.reusable_bytes, 3 * block_bytes);
  EXPECT_EQ(usage.capacity_bytes, 8 * block_bytes);
  Find(kTen, 10);
  EXPECT_EQ(cache_->Usage().used_bytes, 10 * cache_->layout().BytesPerToken());
  EXPECT_EQ(cache_->Usage().reserved_bytes, 3 * block_bytes);
  EXPECT_EQ(cache_->Usage().reusable_bytes, 0);
  const PrefixStats stats = cache_->prefix_stats();
  EXPECT_EQ(stats.tokens_asked, 10);
  EXPECT_EQ(stats.tokens_hit, 10);
  EXPECT_EQ(stats.blocks_added, 3);
}

TEST_F(KvCachePrefix, APartHitCopiesItsEqualSlotsAndNoMore) {
  Make(4, 8);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = Find({1, 2, 3, 4, 5, 6, 70, 80}, 6);
  EXPECT_EQ(cache_->num_free_blocks(), 5);  // lookup copies nothing
  auto plan = cache_->Reserve(sequence, 2);
  EXPECT_EQ(cache_->num_free_blocks(), 4);
  Verify();  // the copy's other slots are empty
  Write(*plan, {70, 80});
  ASSERT_TRUE(cache_->Commit(*std::move(plan)).has_value());
  ExpectTokens(sequence, {1, 2, 3, 4, 5, 6, 70, 80});
  Find(kTen, 10);
}

TEST_F(KvCachePrefix, ScopesNeverShare) {
  Make(4, 8);
  FinishAndCache(CreateWith(kTen), kTen);
  for (const PrefixScope& other :
       {PrefixScope(), PrefixScope().Text("modelm", ""), PrefixScope().Text("mode", "lm"),
        PrefixScope(scope_).Text("", "")}) {
    EXPECT_EQ(cache_->Length(cache_->CreateSequence(other, kTen)), 0);
  }
  const SequenceId sequence = Find(kTen, 10);
  const Status published = cache_->CachePrefix(sequence, PrefixScope(), kTen);
  EXPECT_EQ(published.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(published.error().message,
            "kv cache: expected the tokens and scope that entry 0 of the sequence was cached with, "
            "got others");
}

TEST_F(KvCachePrefix, EqualBlocksAreStoredOnceForForksToo) {
  Make(4, 8);
  const SequenceId first = CreateWith(kTen);
  const SequenceId second = CreateWith(kTen);
  const SequenceId fork = cache_->Fork(second).value();
  ASSERT_TRUE(cache_->Truncate(fork, 6).has_value());
  CachePrefix(first, kTen);
  EXPECT_EQ(cache_->num_free_blocks(), 2);
  {
    const auto plan = cache_->Reserve(fork, 1);  // its copied block is replaced meanwhile
    CachePrefix(second, kTen);
  }
  Verify();
  EXPECT_EQ(cache_->num_free_blocks(), 4);
  ExpectTokens(second, kTen);
  ExpectTokens(fork, Slice(kTen, 6));
  EXPECT_EQ(cache_->View(first)->Key(0, 0, 5), cache_->View(fork)->Key(0, 0, 5));
  EXPECT_EQ(cache_->prefix_stats().blocks_added, 2);
}

TEST_F(KvCachePrefix, PublishRefusesWhatTheSequenceIsNot) {
  Make(4, 8);
  const SequenceId sequence = CreateWith(kTen);
  CachePrefix(sequence, kTen);
  Tokens other = kTen;
  other[6] = 0;
  EXPECT_EQ(cache_->CachePrefix(sequence, scope_, other).error().code, ErrorCode::kInvalidArgument);
  const Status longer = cache_->FinishAndCache(sequence, scope_, Slice(kTen, 9));
  EXPECT_EQ(longer.error().message,
            "kv cache: expected the 10 tokens of the sequence to cache, got 9");
  EXPECT_EQ(cache_->CachePrefix(SequenceId{}, scope_, kTen).error().code, ErrorCode::kNotFound);
  const auto plan = cache_->Reserve(sequence, 1);
  EXPECT_EQ(cache_->CachePrefix(sequence, scope_, kTen).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(cache_->FinishAndCache(sequence, scope_, kTen).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(KvCachePrefix, ReserveEvictsTheLongestUnusedFromItsEnd) {
  Make(4, 6);
  FinishAndCache(CreateWith(kTen), kTen);
  const Tokens other = {11, 12, 13, 14, 15, 16, 17, 18};
  FinishAndCache(CreateWith(other), other);
  ASSERT_TRUE(cache_->Drop(Find(kTen, 10)).has_value());  // now `other` is the older one
  const SequenceId sequence = CreateWith({21, 22, 23, 24, 25, 26, 27, 28});
  EXPECT_EQ(cache_->prefix_stats().blocks_evicted, 1);
  ASSERT_TRUE(cache_->Drop(Find(other, 4)).has_value());
  ASSERT_TRUE(cache_->Drop(Find(kTen, 10)).has_value());
  Append(sequence, {29, 30, 31, 32, 33, 34, 35, 36});
  EXPECT_EQ(cache_->prefix_stats().blocks_evicted, 3);
  Find(other, 0);
  Find(kTen, 8);  // now held: no more than the free block and itself
  const auto plan = cache_->Reserve(sequence, 1);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(
      plan.error().message,
      "kv cache: 1 more tokens need 1 blocks of 4 tokens, got 0 free and 0 evictable ones of 6");
}

TEST_F(KvCachePrefix, ExhaustionEvictsNothing) {
  Make(4, 4);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = cache_->CreateSequence();
  EXPECT_EQ(cache_->Reserve(sequence, 17).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(cache_->num_evictable_blocks(), 3);
  {
    const auto plan = cache_->Reserve(sequence, 8);
    EXPECT_EQ(cache_->num_evictable_blocks(), 2);
  }
  EXPECT_EQ(cache_->num_free_blocks(), 2);  // what was evicted stays evicted
  Find(kTen, 8);
}

TEST_F(KvCachePrefix, ALoneSequenceTakesOverWhatItCannotCopy) {
  Make(4, 3);
  Tokens twelve = kTen;
  twelve.insert(twelve.end(), {11, 12});
  FinishAndCache(CreateWith(twelve), twelve);
  const SequenceId sequence = Find({1, 2, 3}, 3);
  EXPECT_EQ(cache_->Reserve(sequence, 10).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(cache_->prefix_stats().blocks_detached, 0);
  {
    const auto plan = cache_->Reserve(sequence, 9);  // the two blocks behind are evicted first
    ASSERT_TRUE(plan.has_value());
    Verify();
  }
  Verify();
  EXPECT_EQ(cache_->prefix_stats().blocks_evicted, 2);
  EXPECT_EQ(cache_->prefix_stats().blocks_detached, 1);
  Append(sequence, {40, 41, 42, 43, 44, 45, 46, 47, 48});
  ExpectTokens(sequence, {1, 2, 3, 40, 41, 42, 43, 44, 45, 46, 47, 48});
}

TEST_F(KvCachePrefix, TheOnlyRequestOfAContiguousCacheGoesOnAfterAPartHit) {
  Make(16, 1);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = Find({1, 2, 3, 4, 5, 60}, 5);
  Append(sequence, {60, 61});
  ExpectTokens(sequence, {1, 2, 3, 4, 5, 60, 61});
  FinishAndCache(sequence, {1, 2, 3, 4, 5, 60, 61});
  Find({1, 2, 3, 4, 5, 60, 61, 62}, 7);
}

TEST_F(KvCachePrefix, ABlockThatOthersHoldIsNotTakenOver) {
  Make(16, 1);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = Find(kTen, 10);
  const SequenceId other = Find({1, 2}, 2);
  EXPECT_EQ(cache_->Reserve(sequence, 1).error().code, ErrorCode::kExhausted);
  ASSERT_TRUE(cache_->Drop(other).has_value());
  Append(sequence, {11});
}

// A block that a fork has cut, and retired with fewer tokens than the other fork has in it.
TEST_F(KvCachePrefix, ABlockIsKnownByAsManyTokensAsWerePublished) {
  Make(4, 8);
  const SequenceId first = CreateWith(kTen);
  const SequenceId fork = cache_->Fork(first).value();
  ASSERT_TRUE(cache_->Truncate(fork, 2).has_value());
  FinishAndCache(fork, {1, 2});
  ASSERT_TRUE(cache_->Drop(Find(kTen, 2)).has_value());
  CachePrefix(first, kTen);
  ASSERT_TRUE(cache_->Drop(Find(kTen, 8)).has_value());
  FinishAndCache(first, kTen);
  Find(kTen, 10);
  EXPECT_EQ(cache_->prefix_stats().blocks_added, 3);
  EXPECT_EQ(cache_->prefix_stats().blocks_superseded, 0);
}

TEST_F(KvCachePrefix, ALongerTextFreesTheTailThatItBeginsWith) {
  Make(4, 8);
  FinishAndCache(CreateWith(Slice(kTen, 6)), Slice(kTen, 6));
  const SequenceId sequence = Find(kTen, 6);
  Append(sequence, {7, 8, 9, 10});  // copies the tail
  FinishAndCache(sequence, kTen);
  EXPECT_EQ(cache_->num_evictable_blocks(), 3);
  EXPECT_EQ(cache_->num_free_blocks(), 5);
  EXPECT_EQ(cache_->prefix_stats().blocks_superseded, 1);
  FinishAndCache(CreateWith(Slice(kTen, 7)), Slice(kTen, 7));  // all known: nothing is added
  EXPECT_EQ(cache_->num_free_blocks(), 5);
  EXPECT_EQ(cache_->prefix_stats().blocks_added, 4);
}

TEST_F(KvCachePrefix, ForgetEvictsAllThatNoSequenceHolds) {
  Make(4, 8);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = Find(Slice(kTen, 5), 5);
  cache_->ClearPrefixCache();
  Verify();
  EXPECT_EQ(cache_->prefix_stats().blocks_evicted, 1);
  EXPECT_EQ(cache_->prefix_stats().num_indexed_blocks, 2);
  ASSERT_TRUE(cache_->Drop(sequence).has_value());
  cache_->ClearPrefixCache();
  EXPECT_EQ(cache_->num_free_blocks(), 8);
  Find(kTen, 0);
}

TEST_F(KvCachePrefix, AHitIsNoLongerThanASequenceMayBe) {
  Make(4, 8);
  KvConfig config = cache_->config();
  config.max_sequence_tokens = 6;
  cache_ = KvCache::Create(config).value();
  FinishAndCache(CreateWith(Slice(kTen, 6)), Slice(kTen, 6));
  EXPECT_EQ(cache_->Reserve(Find(kTen, 6), 1).error().code, ErrorCode::kExhausted);
}

TEST_F(KvCachePrefix, EvictionAndTakeOverAllocateNothing) {
  Make(4, 8);
  FinishAndCache(CreateWith(kTen), kTen);
  const SequenceId sequence = Find(Slice(kTen, 3), 3);
  const float row[29] = {};
  const TensorView rows = DenseF32(row, {29, 1, 1});
  const int64_t before = NumAllocations();
  auto plan = cache_->Reserve(sequence, 29);
  const bool is_written = plan.has_value() && cache_->Write(*plan, 0, rows, rows).has_value() &&
                          cache_->Commit(*std::move(plan)).has_value();
  EXPECT_EQ(NumAllocations() - before, 0);
  EXPECT_TRUE(is_written);
  EXPECT_EQ(cache_->prefix_stats().blocks_evicted, 2);
  EXPECT_EQ(cache_->prefix_stats().blocks_detached, 1);
}

}  // namespace
}  // namespace kvick
