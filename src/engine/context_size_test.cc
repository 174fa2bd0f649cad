#include "engine/context_size.h"

#include <gtest/gtest.h>

namespace kvick {
namespace {

// 2 x 2 layers x 1 head x 8 x 2 bytes = 64 bytes a token.
ModelInfo SmallInfo() {
  ModelInfo info;
  info.num_layers = 2;
  info.num_kv_heads = 1;
  info.head_dim = 8;
  info.max_positions = 1000;
  info.weight_format = "bf16";
  return info;
}

TEST(ChooseContext, IsTheModelsWhereMemoryAllows) {
  const auto context = ChooseContext(SmallInfo(), {}, 2 * 64 * 1000 + 2048);
  EXPECT_EQ(context->tokens, 1000);
  EXPECT_FALSE(context->is_capped);
}

TEST(ChooseContext, TakesHalfOfTheMemoryInWholeBlocks) {
  const auto context = ChooseContext(SmallInfo(), {}, 2 * 64 * 100);
  EXPECT_EQ(context->tokens, 96);  // 6 blocks of 16
  EXPECT_TRUE(context->is_capped);
  EngineOptions contiguous;
  contiguous.block_tokens = 0;
  contiguous.max_sequences = 4;
  EXPECT_EQ(ChooseContext(SmallInfo(), contiguous, 2 * 64 * 100)->tokens, 25);
}

TEST(ChooseContext, WithoutACacheActivationsTakeTheHalf) {
  ModelInfo info = SmallInfo();
  info.max_positions = int64_t{1} << 40;  // a header may say so
  info.hidden_size = 16;
  info.num_heads = 2;
  info.intermediate_size = 24;
  const auto context = ChooseUncachedContext(info, 0, 1 << 20);
  EXPECT_TRUE(context->is_capped);
  EXPECT_LT(context->tokens, (1 << 20) / 2 / (4 * 3 * 16));
}

TEST(ChooseContext, ASetOneIsTaken) {
  EngineOptions options;
  options.context_tokens = 5000;
  const auto context = ChooseContext(SmallInfo(), options, 1);
  EXPECT_EQ(context->tokens, 5000);
  EXPECT_FALSE(context->is_capped);
}

TEST(ChooseContext, OneTextMayTakeAllOfTheCacheThatWasAskedFor) {
  EngineOptions options;
  options.max_sequences = 100;
  options.cache_bytes = 64 * 100;
  EXPECT_EQ(ChooseContext(SmallInfo(), options, 1 << 30)->tokens, 96);
}

TEST(ChooseContext, SaysWhereNothingFits) {
  EXPECT_EQ(ChooseContext(SmallInfo(), {}, 100).error().code, ErrorCode::kExhausted);
}

TEST(ChooseContext, RefusesOptionsOutOfRange) {
  for (const EngineOptions& options :
       {EngineOptions{.max_sequences = 0}, EngineOptions{.context_tokens = -1},
        EngineOptions{.block_tokens = -1}, EngineOptions{.batch_tokens = 0},
        EngineOptions{.cache_bytes = -1}}) {
    EXPECT_EQ(ChooseContext(SmallInfo(), options, 1 << 30).error().code,
              ErrorCode::kInvalidArgument);
  }
}

TEST(CacheConfig, BacksUpFrontWhatWasAskedFor) {
  EngineOptions options;
  EXPECT_EQ(CacheConfig(SmallInfo(), options, 100).backing, KvBacking::kOnDemand);
  options.context_tokens = 100;
  EXPECT_EQ(CacheConfig(SmallInfo(), options, 100).backing, KvBacking::kUpFront);
}

TEST(CacheConfig, HasABlockForEveryTokenOfEverySequence) {
  EngineOptions options;
  options.max_sequences = 3;
  const KvConfig paged = CacheConfig(SmallInfo(), options, 100);
  EXPECT_EQ(paged.num_blocks, 3 * 7);
  EXPECT_EQ(paged.max_sequence_tokens, 100);
  options.block_tokens = 0;
  const KvConfig contiguous = CacheConfig(SmallInfo(), options, 100);
  EXPECT_EQ(contiguous.num_blocks, 3);
  EXPECT_EQ(contiguous.block_tokens, 100);
}

}  // namespace
}  // namespace kvick
