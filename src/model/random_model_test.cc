#include "model/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "model/forward_ref.h"
#include "model/model_parts.h"

namespace kvick {
namespace {

ModelSpec SmallSpec() {
  ModelSpec spec;
  spec.layers.resize(3);
  spec.hidden_size = 64;
  spec.intermediate_size = 96;
  spec.num_heads = 6;
  spec.num_kv_heads = 2;
  spec.head_dim = 16;
  spec.vocab_size = 100;
  spec.max_positions = 512;
  return spec;
}

TEST(RandomModel, HasTheSizesAndTheTypeThatWereAskedFor) {
  for (const WeightType type :
       {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
    ModelSpec spec = SmallSpec();
    if (type == WeightType::kQ8_0) spec.num_heads = 8;
    const auto random = RandomModel::Create(spec, type, 2);
    ASSERT_TRUE(random.has_value()) << random.error().message;
    const ModelInfo& info = random->model().info();
    EXPECT_EQ(info.num_layers, spec.num_layers());
    EXPECT_EQ(info.num_heads, spec.num_heads);
    EXPECT_EQ(info.num_kv_heads, spec.num_kv_heads);
    EXPECT_EQ(info.head_dim, spec.head_dim);
    EXPECT_EQ(info.vocab_size, spec.vocab_size);
    EXPECT_EQ(info.weight_format, FormatOf(type).name);
    EXPECT_FALSE(random->model().has_tokenizer());
  }
}

TEST(RandomModel, TiesTheOutputToTheEmbedding) {
  for (const bool is_tied : {true, false}) {
    ModelSpec spec = SmallSpec();
    spec.tie_word_embeddings = is_tied;
    const auto random = RandomModel::Create(spec, WeightType::kBF16, 1).value();
    const ModelWeights& weights = random.model().parts().file.weights();
    EXPECT_EQ(weights.output.data == weights.embedding.data, is_tied);
  }
}

// Neither zero, nor infinite, nor the same for every token and row.
TEST(RandomModel, GivesLogitsOfOrdinarySize) {
  const auto random = RandomModel::Create(SmallSpec(), WeightType::kBF16, 2).value();
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
  const auto a = RandomModel::Create(SmallSpec(), WeightType::kF32, 1).value();
  const auto b = RandomModel::Create(SmallSpec(), WeightType::kF32, 3).value();
  const MatrixView& x = a.model().parts().file.weights().layers[2].down;
  const MatrixView& y = b.model().parts().file.weights().layers[2].down;
  EXPECT_EQ(std::memcmp(x.data, y.data, 64 * 96 * sizeof(float)), 0);
}

TEST(RandomModel, RefusesSizesThatCannotBe) {
  ModelSpec spec = SmallSpec();
  spec.head_dim = 7;
  EXPECT_FALSE(RandomModel::Create(spec, WeightType::kF32, 1).has_value());
  spec = SmallSpec();
  spec.hidden_size = int64_t{1} << 62;
  EXPECT_FALSE(RandomModel::Create(spec, WeightType::kF32, 1).has_value());
  spec = SmallSpec();
  spec.hidden_size = 40;  // no whole blocks of q8_0
  EXPECT_FALSE(RandomModel::Create(spec, WeightType::kQ8_0, 1).has_value());
}

}  // namespace
}  // namespace kvick
