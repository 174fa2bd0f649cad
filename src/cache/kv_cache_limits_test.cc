// Pools of any size, and plans in wrong hands.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/has_sanitizer.h"
#include "kvick/kv_cache.h"

namespace kvick {
namespace {

constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

KvConfig SmallConfig(int64_t num_blocks) {
  KvConfig config;
  config.num_layers = config.num_kv_heads = 1;
  config.head_dim = 2;
  config.dtype = DType::kF32;
  config.block_tokens = 1;
  config.num_blocks = num_blocks;
  return config;
}

KvConfig OnDemand(int64_t num_blocks) {
  KvConfig config = SmallConfig(num_blocks);
  config.backing = KvBacking::kOnDemand;
  return config;
}

Status WriteZeros(KvCache& cache, WritePlan& plan) {
  const std::vector<float> rows(static_cast<size_t>(plan.num_tokens() * 2));
  const TensorView view = DenseF32(rows.data(), {plan.num_tokens(), 1, 2});
  return cache.Write(plan, 0, view, view);
}

void Append(KvCache& cache, SequenceId sequence, int64_t num_tokens) {
  auto plan = cache.Reserve(sequence, num_tokens);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_TRUE(WriteZeros(cache, *plan).has_value());
  ASSERT_TRUE(cache.Commit(*std::move(plan)).has_value());
}

int64_t MaxResidentKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Tables of 2^31 blocks are some 70 GiB. What looks at all of them, once in 1,000 steps, shows in
// the memory that is touched, whatever the machine's speed.
TEST(KvCacheLimits, NoStepCostsByTheSizeOfThePool) {
  auto cache = KvCache::Create(OnDemand(kMaxBlocks));
  ASSERT_TRUE(cache.has_value()) << cache.error().message;
  const int64_t before_kib = MaxResidentKib();
  const PrefixScope scope;
  std::vector<int32_t> tokens;
  const SequenceId sequence = (*cache)->CreateSequence();
  for (int32_t i = 0; i < 1000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Append(**cache, sequence, 1));
    tokens.push_back(i);
    ASSERT_EQ((*cache)->Usage().used_bytes, (i + 1) * (*cache)->layout().BytesPerToken());
    ASSERT_EQ((*cache)->num_available_blocks(), kMaxBlocks - i - 1);
    ASSERT_EQ((*cache)->FindPrefix(scope, tokens).num_tokens, 0);
    ASSERT_EQ((*cache)->prefix_stats().num_indexed_blocks, 0);
  }
  ASSERT_TRUE((*cache)->CachePrefix(sequence, scope, tokens).has_value());
  const SequenceId fork = (*cache)->Fork(sequence).value();
  ASSERT_TRUE((*cache)->Truncate(fork, 500).has_value());
  ASSERT_TRUE((*cache)->Drop(fork).has_value());
  ASSERT_TRUE((*cache)->FinishAndCache(sequence, scope, tokens).has_value());
  (*cache)->ClearPrefixCache();
  EXPECT_EQ((*cache)->num_free_blocks(), kMaxBlocks);
  EXPECT_LT(MaxResidentKib() - before_kib, 64 << 10);
}

// What this process may map beyond what it has mapped, until the end of the object.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(int64_t num_bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    int64_t num_pages = 0;
    std::ifstream("/proc/self/statm") >> num_pages;
    limit.rlim_cur = static_cast<rlim_t>(num_pages * sysconf(_SC_PAGESIZE) + num_bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// Of a million blocks keys and values take 16 MiB, the tables 32: whichever of them does not fit.
TEST(KvCacheLimits, TablesThatDoNotFitAreAnErrorNotAnException) {
#if defined(KVICK_HAS_SANITIZER)
  GTEST_SKIP() << "sanitizers need all of the address space";
#endif
  for (int64_t num_mib = 8; num_mib <= 40; num_mib += 4) {
    for (const KvConfig& config : {SmallConfig(1 << 20), OnDemand(1 << 20)}) {
      const AddressSpaceLimit limit(num_mib << 20);
      const auto cache = KvCache::Create(config);
      ASSERT_FALSE(cache.has_value()) << num_mib;
      EXPECT_EQ(cache.error().code, ErrorCode::kExhausted) << cache.error().message;
    }
  }
  EXPECT_TRUE(KvCache::Create(SmallConfig(1 << 20)).has_value());
}

TEST(KvCacheLimits, MoreBlocksThanIdsAreAnError) {
  const auto too_many = KvCache::Create(OnDemand(kMaxBlocks + 1));
  ASSERT_FALSE(too_many.has_value());
  EXPECT_EQ(too_many.error().code, ErrorCode::kInvalidArgument);
}

void ExpectRefused(KvCache& cache, WritePlan plan, const char* what) {
  const auto expect = [what](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message.find(what), std::string::npos) << error.message;
  };
  const auto view = cache.View(plan);
  ASSERT_FALSE(view.has_value());
  expect(view.error());
  const auto written = WriteZeros(cache, plan);
  ASSERT_FALSE(written.has_value());
  expect(written.error());
  const auto committed = cache.Commit(std::move(plan));
  ASSERT_FALSE(committed.has_value());
  expect(committed.error());
}

TEST(WritePlan, OfAnotherCacheIsAnError) {
  auto cache = KvCache::Create(SmallConfig(8)).value();
  auto other = KvCache::Create(SmallConfig(8)).value();
  const SequenceId sequence = other->CreateSequence();
  cache->CreateSequence();
  ExpectRefused(*cache, other->Reserve(sequence, 2).value(), "one of another cache");
  EXPECT_EQ(other->num_free_blocks(), 8);  // the plan was dropped where it belongs
  EXPECT_TRUE(other->Verify().has_value());
  EXPECT_TRUE(cache->Verify().has_value());
}

TEST(WritePlan, MayOutliveItsCache) {
  auto cache = KvCache::Create(SmallConfig(8)).value();
  auto other = KvCache::Create(SmallConfig(8)).value();
  std::optional<WritePlan> dropped = cache->Reserve(cache->CreateSequence(), 2).value();
  WritePlan used = cache->Reserve(cache->CreateSequence(), 2).value();
  cache.reset();
  dropped.reset();
  ExpectRefused(*other, std::move(used), "one of a cache that was destroyed");
}

TEST(WritePlan, ThatWasMovedFromIsAnError) {
  auto cache = KvCache::Create(SmallConfig(8)).value();
  WritePlan plan = cache->Reserve(cache->CreateSequence(), 2).value();
  WritePlan moved = std::move(plan);
  ExpectRefused(*cache, std::move(plan),
                "a committed or moved one");  // NOLINT(bugprone-use-after-move)
  ASSERT_TRUE(WriteZeros(*cache, moved).has_value());
  EXPECT_TRUE(cache->Commit(std::move(moved)).has_value());
  ExpectRefused(*cache, std::move(moved),
                "a committed or moved one");  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(cache->Verify().has_value());
}

}  // namespace
}  // namespace kvick
