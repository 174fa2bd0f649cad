#include "kvick/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace kvick {
namespace {

constexpr int64_t kLayers = 2, kHeads = 3, kDim = 4;

KvConfig SmallConfig(int64_t block_tokens = 4, int64_t num_blocks = 8) {
  KvConfig config;
  config.num_layers = kLayers;
  config.num_kv_heads = kHeads;
  config.head_dim = kDim;
  config.dtype = DType::kF32;
  config.block_tokens = block_tokens;
  config.num_blocks = num_blocks;
  config.fill = KvFill::kNan;
  return config;
}

TensorView ThreeDims(const std::vector<float>& data, int64_t tokens, int64_t heads, int64_t dim) {
  return {reinterpret_cast<const std::byte*>(data.data()),
          DType::kF32,
          3,
          {tokens, heads, dim},
          {heads * dim, dim, 1}};
}

// Writes `tokens` tokens whose elements are all `value` (keys) and -`value` (values).
Status WriteAll(KvCache& cache, WritePlan& plan, float value) {
  const std::vector<float> k(plan.num_tokens() * kHeads * kDim, value);
  const std::vector<float> v(plan.num_tokens() * kHeads * kDim, -value);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    auto status = cache.Write(plan, layer, ThreeDims(k, plan.num_tokens(), kHeads, kDim),
                              ThreeDims(v, plan.num_tokens(), kHeads, kDim));
    if (!status) return status;
  }
  return {};
}

void Append(KvCache& cache, SequenceId sequence, int64_t tokens, float value) {
  auto plan = cache.Reserve(sequence, tokens);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_TRUE(WriteAll(cache, *plan, value).has_value());
  ASSERT_TRUE(cache.Commit(*std::move(plan)).has_value());
  const auto verified = cache.Verify();
  ASSERT_TRUE(verified.has_value()) << verified.error().message;
}

float FirstOfKey(const KvView& view, int64_t position) {
  return *reinterpret_cast<const float*>(view.Key(kLayers - 1, kHeads - 1, position));
}

std::unique_ptr<KvCache> Make(const KvConfig& config) {
  auto cache = KvCache::Create(config);
  EXPECT_TRUE(cache.has_value()) << (cache ? "" : cache.error().message);
  return *std::move(cache);
}

TEST(KvCache, NothingIsVisibleBeforeCommit) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  auto plan = cache->Reserve(sequence, 3);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->first_position(), 0);
  EXPECT_EQ(plan->position(2), 2);
  EXPECT_EQ(cache->View(*plan)->length, 3);
  EXPECT_EQ(cache->Length(sequence), 0);
  EXPECT_EQ(cache->Usage().used_bytes, 0);
  ASSERT_TRUE(WriteAll(*cache, *plan, 1).has_value());
  EXPECT_EQ(cache->Length(sequence), 0);
  ASSERT_TRUE(cache->Commit(*std::move(plan)).has_value());
  EXPECT_EQ(cache->Length(sequence), 3);
  EXPECT_EQ(cache->Reserve(sequence, 1)->first_position(), 3);
}

TEST(KvCache, ADroppedPlanLeavesNoTrace) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  Append(*cache, sequence, 3, 1);
  const KvUsage before = cache->Usage();
  {
    auto plan = cache->Reserve(sequence, 10);
    ASSERT_TRUE(WriteAll(*cache, *plan, 2).has_value());
    EXPECT_GT(cache->Usage().reserved_bytes, before.reserved_bytes);
    EXPECT_EQ(cache->Usage().used_bytes, before.used_bytes);
  }
  EXPECT_EQ(cache->Usage().reserved_bytes, before.reserved_bytes);
  EXPECT_TRUE(cache->Verify().has_value());  // poison restored behind the third token
}

TEST(KvCache, RunningOutIsAValueAndChangesNothing) {
  auto cache = Make(SmallConfig(4, 3));
  const SequenceId sequence = cache->CreateSequence();
  Append(*cache, sequence, 6, 1);
  const auto plan = cache->Reserve(sequence, 7);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(
      plan.error().message,
      "kv cache: 7 more tokens need 2 blocks of 4 tokens, got 1 free and 0 evictable ones of 3");
  EXPECT_EQ(cache->num_free_blocks(), 1);
  Append(*cache, sequence, 6, 2);
  EXPECT_EQ(cache->num_free_blocks(), 0);
}

TEST(KvCache, WritingAnotherNumberOfHeadsIsAnError) {
  auto cache = Make(SmallConfig());
  auto plan = cache->Reserve(cache->CreateSequence(), 2);
  const std::vector<float> data(2 * 12 * kDim, 1.0f);
  const auto status =
      cache->Write(*plan, 0, ThreeDims(data, 2, 12, kDim), ThreeDims(data, 2, 12, kDim));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "kv cache: k: expected f32 [2, 3, 4], got f32 [2, 12, 4]");
  EXPECT_FALSE(
      cache->Write(*plan, 0, ThreeDims(data, 1, kHeads, kDim), ThreeDims(data, 1, kHeads, kDim)));
}

TEST(KvCache, LayersAreWrittenOnceInOrderAndAllOfThem) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  auto plan = cache->Reserve(sequence, 1);
  const std::vector<float> data(kHeads * kDim, 1.0f);
  const TensorView row = ThreeDims(data, 1, kHeads, kDim);
  EXPECT_FALSE(cache->Write(*plan, 1, row, row).has_value());
  EXPECT_TRUE(cache->Write(*plan, 0, row, row).has_value());
  EXPECT_FALSE(cache->Write(*plan, 0, row, row).has_value());
  EXPECT_FALSE(cache->Commit(*std::move(plan)).has_value());
  EXPECT_EQ(cache->Length(sequence), 0);
  EXPECT_TRUE(cache->Verify().has_value());
  EXPECT_EQ(cache->num_free_blocks(), 8);
}

TEST(KvCache, ASequenceHasOneOpenPlanAndStaysAsItIsMeanwhile) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  auto plan = cache->Reserve(sequence, 1);
  for (const ErrorCode code :
       {cache->Reserve(sequence, 1).error().code, cache->Truncate(sequence, 0).error().code,
        cache->Reset(sequence).error().code, cache->Drop(sequence).error().code,
        cache->Fork(sequence).error().code}) {
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  }
}

TEST(KvCache, ADroppedNameIsNeverValidAgain) {
  auto cache = Make(SmallConfig());
  const SequenceId old = cache->CreateSequence();
  ASSERT_TRUE(cache->Drop(old).has_value());
  const SequenceId young = cache->CreateSequence();
  EXPECT_NE(old, young);
  EXPECT_EQ(cache->Length(old).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(cache->Reserve(old, 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(cache->Drop(old).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(cache->Length(SequenceId{}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(cache->Length(young), 0);
}

TEST(KvCache, ForkSharesBlocksAndTheFirstWriteCopies) {
  auto cache = Make(SmallConfig());
  const SequenceId parent = cache->CreateSequence();
  Append(*cache, parent, 6, 1);
  const SequenceId child = cache->Fork(parent).value();
  EXPECT_EQ(cache->num_free_blocks(), 6);  // nothing was copied yet
  EXPECT_EQ(cache->Usage().used_bytes, 6 * cache->layout().BytesPerToken());
  Append(*cache, child, 1, 2);
  EXPECT_EQ(cache->num_free_blocks(), 5);  // the half-full block, once
  Append(*cache, parent, 1, 3);
  EXPECT_EQ(cache->num_free_blocks(), 5);  // now its only holder: written in place
  const KvView child_view = cache->View(child).value(), parent_view = cache->View(parent).value();
  EXPECT_EQ(child_view.Key(0, 0, 0), parent_view.Key(0, 0, 0));
  EXPECT_NE(child_view.Key(0, 0, 5), parent_view.Key(0, 0, 5));
  EXPECT_EQ(FirstOfKey(child_view, 5), 1);
  EXPECT_EQ(FirstOfKey(child_view, 6), 2);
  EXPECT_EQ(FirstOfKey(parent_view, 6), 3);
}

TEST(KvCache, APlanOnASharedBlockThatIsDroppedRestoresTheSharing) {
  auto cache = Make(SmallConfig());
  const SequenceId parent = cache->CreateSequence();
  Append(*cache, parent, 2, 1);
  const SequenceId child = cache->Fork(parent).value();
  const std::byte* shared = cache->View(parent)->Key(0, 0, 0);
  {
    auto plan = cache->Reserve(child, 1);
    EXPECT_NE(cache->View(*plan)->Key(0, 0, 0), shared);
    EXPECT_EQ(cache->Usage().used_bytes, 2 * cache->layout().BytesPerToken());
    EXPECT_TRUE(cache->Verify().has_value());
  }
  EXPECT_EQ(cache->View(child)->Key(0, 0, 0), shared);
  EXPECT_EQ(cache->num_free_blocks(), 7);
  EXPECT_TRUE(cache->Verify().has_value());
}

TEST(KvCache, TruncateGivesBlocksBackAndRegrowsFromThere) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  Append(*cache, sequence, 11, 1);
  ASSERT_TRUE(cache->Truncate(sequence, 5).has_value());
  EXPECT_EQ(cache->num_free_blocks(), 6);
  EXPECT_TRUE(cache->Verify().has_value());
  Append(*cache, sequence, 2, 2);
  EXPECT_EQ(FirstOfKey(*cache->View(sequence), 4), 1);
  EXPECT_EQ(FirstOfKey(*cache->View(sequence), 5), 2);
  EXPECT_EQ(cache->Truncate(sequence, 8).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(cache->Truncate(sequence, -1).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(cache->Reset(sequence).has_value());
  EXPECT_EQ(cache->num_free_blocks(), 8);
}

TEST(KvCache, UsageAgreesWithTheFormulaToTheByte) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    KvConfig config = SmallConfig();
    config.dtype = dtype;
    auto cache = Make(config);
    Append(*cache, cache->CreateSequence(), 6, 1);
    const int64_t token = 2 * kLayers * kHeads * kDim * DTypeBytes(dtype);
    const KvUsage usage = cache->Usage();
    EXPECT_EQ(usage.capacity_bytes, 8 * 4 * token);
    EXPECT_EQ(usage.reserved_bytes, 2 * 4 * token);
    EXPECT_EQ(usage.used_bytes, 6 * token);
    EXPECT_EQ(usage.empty_bytes, 2 * token);
  }
}

TEST(KvCache, ContiguousIsOneBlockARequestWithStridedViews) {
  auto cache = Make(SmallConfig().Contiguous(2, 5));
  const SequenceId a = cache->CreateSequence(), b = cache->CreateSequence();
  Append(*cache, a, 5, 1);
  Append(*cache, b, 2, 2);
  EXPECT_EQ(cache->Reserve(a, 1).error().code, ErrorCode::kExhausted);
  const MutableTensorView k = cache->k(1), v = cache->v(1);
  EXPECT_EQ(k.shape, (std::array<int64_t, 4>{2, kHeads, 5, kDim}));
  const auto at = [](const MutableTensorView& t, int64_t row, int64_t head, int64_t slot) {
    return *(reinterpret_cast<const float*>(t.data) + row * t.strides[0] + head * t.strides[1] +
             slot * t.strides[2]);
  };
  const auto row_of_b = static_cast<int64_t>(cache->Blocks(b).value()[0]);
  EXPECT_EQ(at(k, row_of_b, 2, 1), 2);
  EXPECT_EQ(at(v, row_of_b, 2, 1), -2);
  EXPECT_TRUE(std::isnan(at(k, row_of_b, 2, 2)));  // an empty slot
  EXPECT_EQ(k.data, cache->k(1).data);
}

TEST(KvCache, WriteRoundsToTheTypeAndTakesStridedRows) {
  KvConfig config = SmallConfig();
  config.dtype = DType::kBF16;
  auto cache = Make(config);
  auto plan = cache->Reserve(cache->CreateSequence(), 2);
  // k and v side by side in each token's row, as a fused projection leaves them.
  std::vector<float> fused(2 * 2 * kHeads * kDim);
  for (size_t i = 0; i < fused.size(); ++i) fused[i] = 1.0f + 0.001f * static_cast<float>(i);
  TensorView k = ThreeDims(fused, 2, kHeads, kDim);
  k.strides[0] = 2 * kHeads * kDim;
  TensorView v = k;
  v.data += kHeads * kDim * sizeof(float);
  ASSERT_TRUE(cache->Write(*plan, 0, k, v).has_value());
  const KvView view = cache->View(*plan).value();
  for (int64_t token = 0; token < 2; ++token) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const auto* key = reinterpret_cast<const uint16_t*>(view.Key(0, head, token));
      const auto* value = reinterpret_cast<const uint16_t*>(view.Value(0, head, token));
      const float* row = fused.data() + token * 2 * kHeads * kDim + head * kDim;
      for (int64_t d = 0; d < kDim; ++d) {
        EXPECT_EQ(key[d], F32ToBF16(row[d]));
        EXPECT_EQ(value[d], F32ToBF16(row[kHeads * kDim + d]));
      }
    }
  }
}

TEST(KvCache, ABudgetInBytesBecomesBlocks) {
  KvConfig config = SmallConfig();
  config.num_blocks = 0;
  const int64_t block_bytes = KvLayout::Create(config)->block_stride;
  config.max_bytes = 3 * block_bytes + 1;
  EXPECT_EQ(Make(config)->config().num_blocks, 3);
  config.max_bytes = block_bytes - 1;
  EXPECT_EQ(KvCache::Create(config).error().code, ErrorCode::kInvalidArgument);
}

TEST(KvCache, AnAssignedPlanEndsTheOneThatWasThere) {
  auto cache = Make(SmallConfig());
  const SequenceId a = cache->CreateSequence(), b = cache->CreateSequence();
  auto plan = cache->Reserve(a, 1).value();
  auto other = cache->Reserve(b, 1).value();
  plan = std::move(other);
  EXPECT_EQ(plan.sequence(), b);
  EXPECT_TRUE(cache->Reserve(a, 1).has_value());
  EXPECT_FALSE(cache->Reserve(b, 1).has_value());
}

TEST(KvCache, MoreTokensThanNumbersAreExhaustedNotOverflowing) {
  auto cache = Make(SmallConfig());
  const SequenceId sequence = cache->CreateSequence();
  Append(*cache, sequence, 3, 1);
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(cache->Reserve(sequence, kHuge).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(cache->Reserve(sequence, kHuge - 3).error().code, ErrorCode::kExhausted);
  KvConfig limited = SmallConfig();
  limited.max_sequence_tokens = kHuge;
  auto unlimited = Make(limited);
  EXPECT_TRUE(unlimited->Reserve(unlimited->CreateSequence(), 5).has_value());
  EXPECT_FALSE(unlimited->Reserve(unlimited->CreateSequence(), kHuge).has_value());
}

TEST(KvCache, AMachineThatCannotGiveItSaysHowMuchWouldFit) {
  KvConfig config = SmallConfig(16, std::numeric_limits<int32_t>::max());
  config.head_dim = 256;
  config.fill = KvFill::kAsMapped;
  const auto cache = KvCache::Create(config);
  ASSERT_FALSE(cache.has_value());
  EXPECT_EQ(cache.error().code, ErrorCode::kExhausted);
  EXPECT_NE(cache.error().message.find("room for"), std::string::npos);
  config.num_blocks = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(KvCache::Create(config).error().code, ErrorCode::kInvalidArgument);
}

TEST(KvCache, OnDemandStartsWhereUpFrontDoesNotFit) {
  KvConfig config = SmallConfig(16, 1 << 20);
  config.head_dim = 256;
  config.num_layers = kLayers;
  config.fill = KvFill::kAsMapped;
  config.backing = KvBacking::kOnDemand;  // ~200 GB of addresses
  auto cache = KvCache::Create(config);
  ASSERT_TRUE(cache.has_value()) << cache.error().message;
  EXPECT_TRUE((*cache)->Reserve((*cache)->CreateSequence(), 1000).has_value());
}

// The rows of a long block lie far apart: huge pages would back everything between them.
TEST(KvCache, OnDemandBacksOfALongBlockWhatIsWritten) {
  KvConfig config = SmallConfig(1 << 20, 4);  // 16 MiB a row
  config.fill = KvFill::kAsMapped;
  config.backing = KvBacking::kOnDemand;
  auto cache = Make(config);
  Append(*cache, cache->CreateSequence(), 100, 1);
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto num_bytes = static_cast<size_t>(config.num_blocks * cache->layout().block_stride);
  std::vector<unsigned char> pages(num_bytes / page_bytes);
  ASSERT_EQ(mincore(cache->k(0).data, num_bytes, pages.data()), 0);
  const auto num_resident = std::ranges::count_if(pages, [](auto page) { return page & 1; });
  EXPECT_EQ(num_resident, 2 * kLayers * kHeads);
}

TEST(KvCache, AddressesNeverChange) {
  auto cache = Make(SmallConfig());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(cache->k(0).data) % (2 << 20), 0u);
  const SequenceId sequence = cache->CreateSequence();
  Append(*cache, sequence, 1, 1);
  const std::byte* first = cache->View(sequence)->Key(0, 0, 0);
  Append(*cache, sequence, 20, 2);
  EXPECT_EQ(cache->View(sequence)->Key(0, 0, 0), first);
}

}  // namespace
}  // namespace kvick
