#include "kvick/kv_layout.h"

#include <gtest/gtest.h>

#include <limits>

#include "kvick/kv_cache.h"

namespace kvick {
namespace {

KvConfig Llama3_8B() {
  KvConfig config;
  config.num_layers = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.dtype = DType::kBF16;
  return config;
}

TEST(KvLayout, Llama3Takes128KiBATokenAndOneGiBARequest) {
  const auto paged = KvLayout::Create(Llama3_8B());
  ASSERT_TRUE(paged.has_value());
  EXPECT_EQ(paged->BytesPerToken(), 131072);
  EXPECT_EQ(paged->block_stride, int64_t{2} << 20);  // 16 tokens: one huge page
  const auto contiguous = KvLayout::Create(Llama3_8B().Contiguous(1, 8192));
  ASSERT_TRUE(contiguous.has_value());
  EXPECT_EQ(contiguous->block_stride, int64_t{1} << 30);
}

TEST(KvLayout, EveryElementHasItsOwnPlaceAndNoneIsLeftOver) {
  KvConfig config;
  config.num_layers = 3;
  config.num_kv_heads = 2;
  config.head_dim = 5;
  config.block_tokens = 4;
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    config.dtype = dtype;
    const auto layout = KvLayout::Create(config);
    ASSERT_TRUE(layout.has_value());
    int64_t next = 0;  // row-major [layer][K | V][kv_head][slot]
    for (int64_t layer = 0; layer < 3; ++layer) {
      for (int64_t is_value = 0; is_value < 2; ++is_value) {
        for (int64_t head = 0; head < 2; ++head) {
          for (int64_t slot = 0; slot < 4; ++slot, next += 5 * DTypeBytes(dtype)) {
            EXPECT_EQ(is_value ? layout->ValueOffset(layer, head, slot)
                               : layout->KeyOffset(layer, head, slot),
                      next);
          }
        }
      }
    }
    EXPECT_EQ(layout->block_stride, next);
  }
}

TEST(KvLayout, RefusesNumbersThatCannotBe) {
  const auto code = [](auto change) {
    KvConfig config = Llama3_8B();
    change(config);
    const auto layout = KvLayout::Create(config);
    return layout ? ErrorCode::kInternal : layout.error().code;
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(code([](KvConfig& c) { c.num_layers = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](KvConfig& c) { c.num_kv_heads = -1; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](KvConfig& c) { c.head_dim = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](KvConfig& c) { c.block_tokens = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](KvConfig& c) { c.block_tokens = kHuge; }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvick
