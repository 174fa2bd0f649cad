#include "model/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "model/forward_ref.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

LlamaConfig SmallConfig() {
  LlamaConfig config;
  config.num_layers = 3;
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 100;
  config.max_positions = 512;
  return config;
}

TEST(RandomModel, HasTheSizesAndTheTypeThatWereAskedFor) {
  for (const WeightType type :
       {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
    LlamaConfig config = SmallConfig();
    if (type == WeightType::kQ8_0) config.num_heads = 8;
    const auto random = RandomModel::Create(config, type, 2);
    ASSERT_TRUE(random.has_value()) << random.error().message;
    const ModelInfo& info = random->model().info();
    EXPECT_EQ(info.num_layers, config.num_layers);
    EXPECT_EQ(info.num_heads, config.num_heads);
    EXPECT_EQ(info.num_kv_heads, config.num_kv_heads);
    EXPECT_EQ(info.head_dim, config.head_dim);
    EXPECT_EQ(info.vocab_size, config.vocab_size);
    EXPECT_EQ(info.weight_format, FormatOf(type).name);
    EXPECT_FALSE(random->model().has_tokenizer());
  }
}

TEST(RandomModel, TiesTheOutputToTheEmbedding) {
  for (const bool is_tied : {true, false}) {
    LlamaConfig config = SmallConfig();
    config.tie_word_embeddings = is_tied;
    const auto random = RandomModel::Create(config, WeightType::kBF16, 1).value();
    const ModelWeights& weights = random.model().parts().file.weights();
    EXPECT_EQ(weights.output.data == weights.embedding.data, is_tied);
  }
}

// Neither zero, nor infinite, nor the same for every token and row.
TEST(RandomModel, GivesLogitsOfOrdinarySize) {
  const auto random = RandomModel::Create(SmallConfig(), WeightType::kBF16, 2).value();
  const std::vector<int32_t> tokens = {1, 2, 3};
  const std::vector<double> logits = ForwardRef(random.model().parts().file, tokens);
  double squares = 0;
  for (const double logit : logits) squares += logit * logit;
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(deviation, 0.5);
  EXPECT_LT(deviation, 2);
  EXPECT_NE(logits[0], logits[100]);
  EXPECT_NE(logits[0], logits[1]);
}

TEST(RandomModel, HasTheSameWeightsOnAnyNumberOfThreads) {
  const auto a = RandomModel::Create(SmallConfig(), WeightType::kF32, 1).value();
  const auto b = RandomModel::Create(SmallConfig(), WeightType::kF32, 3).value();
  const MatrixView& x = a.model().parts().file.weights().layers[2].down;
  const MatrixView& y = b.model().parts().file.weights().layers[2].down;
  EXPECT_EQ(std::memcmp(x.data, y.data, 64 * 96 * sizeof(float)), 0);
}

TEST(RandomModel, RefusesSizesThatCannotBe) {
  LlamaConfig config = SmallConfig();
  config.head_dim = 7;
  EXPECT_FALSE(RandomModel::Create(config, WeightType::kF32, 1).has_value());
  config = SmallConfig();
  config.hidden_size = int64_t{1} << 62;
  EXPECT_FALSE(RandomModel::Create(config, WeightType::kF32, 1).has_value());
  config = SmallConfig();
  config.hidden_size = 40;  // no whole blocks of q8_0
  EXPECT_FALSE(RandomModel::Create(config, WeightType::kQ8_0, 1).has_value());
}

}  // namespace
}  // namespace kvick
