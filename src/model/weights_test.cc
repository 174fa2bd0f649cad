#include "model/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "model/model_file.h"
#include "model/tiny_llama_testing.h"

namespace kvick {
namespace {

using testing::GgufSpec;
using testing::Packed;
using testing::SafetensorsBytes;
using testing::SafetensorsTensor;
using testing::TempFolder;
using testing::TinyGguf;
using testing::TinySafetensors;
using testing::WriteFile;

Result<ModelFile> OpenSpec(const TempFolder& folder, const GgufSpec& spec) {
  WriteFile(folder / "model.gguf", spec.Build());
  return ModelFile::Open(folder / "model.gguf");
}

float FirstElement(const MatrixView& matrix) {
  float value;
  std::memcpy(&value, matrix.data, sizeof(value));
  return value;
}

// Every tensor starts with its own number, 1 for the embedding.
GgufSpec NumberedSpec() {
  GgufSpec spec = TinyGguf();
  float number = 0.0f;
  for (GgufSpec::Tensor& tensor : spec.tensors) tensor.data.replace(0, 4, Packed(++number));
  return spec;
}

void ExpectNumbered(const ModelWeights& weights) {
  EXPECT_EQ(FirstElement(weights.embedding), 1);
  EXPECT_EQ(weights.output.data, weights.embedding.data);
  ASSERT_EQ(weights.layers.size(), 2u);
  float number = 1.0f;
  for (const LayerWeights& layer : weights.layers) {
    EXPECT_EQ(layer.attention_norm.at(0), ++number);
    EXPECT_EQ(FirstElement(layer.q), ++number);
    EXPECT_EQ(FirstElement(layer.k), ++number);
    EXPECT_EQ(FirstElement(layer.v), ++number);
    EXPECT_EQ(FirstElement(layer.o), ++number);
    EXPECT_EQ(layer.ffn_norm.at(0), ++number);
    EXPECT_EQ(FirstElement(layer.gate), ++number);
    EXPECT_EQ(FirstElement(layer.up), ++number);
    EXPECT_EQ(FirstElement(layer.down), ++number);
    EXPECT_TRUE(layer.q_bias.empty());
  }
  EXPECT_EQ(weights.final_norm.at(0), ++number);
  EXPECT_EQ(weights.layers[1].down.num_rows, 16);
  EXPECT_EQ(weights.layers[1].down.num_cols, 24);
}

TEST(Weights, AreAllFoundInAGguf) {
  const TempFolder folder;
  auto model = OpenSpec(folder, NumberedSpec());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const ModelFile moved = *std::move(model);
  ExpectNumbered(moved.weights());
  EXPECT_NE(moved.gguf(), nullptr);
  EXPECT_EQ(moved.hf_folder(), nullptr);
  EXPECT_EQ(moved.gguf()->GetString("general.name"), "tiny");
}

TEST(Weights, AreAllFoundInAFolder) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  std::vector<SafetensorsTensor> tensors = TinySafetensors();
  float number = 0.0f;
  for (SafetensorsTensor& tensor : tensors) tensor.data.replace(0, 4, Packed(++number));
  WriteFile(folder / "model.safetensors", SafetensorsBytes(tensors));
  const auto model = ModelFile::Open(folder.path());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  ExpectNumbered(model->weights());
  EXPECT_NE(model->hf_folder(), nullptr);
  EXPECT_EQ(model->gguf(), nullptr);
}

TEST(Weights, TakeAnOutputMatrixAndBiasesWhereThereAreSome) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  std::string bias;
  for (int i = 0; i < 8; ++i) bias += Packed(F32ToF16(static_cast<float>(i)));
  spec.tensors.push_back(
      {.name = "output.weight", .dims = {16, 5}, .data = std::string(320, '\0')});
  spec.tensors.push_back({.name = "blk.1.attn_k.bias", .dims = {8}, .type = 1, .data = bias});
  const auto model = OpenSpec(folder, spec);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_FALSE(model->spec().tie_word_embeddings);
  EXPECT_NE(model->weights().output.data, model->weights().embedding.data);
  EXPECT_TRUE(model->weights().layers[0].k_bias.empty());
  EXPECT_EQ(model->weights().layers[1].k_bias, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Weights, CopyVectorsFromAnyAlignment) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  std::vector<SafetensorsTensor> tensors = TinySafetensors();
  // A name that is known and not read.
  tensors.insert(tensors.begin(), {"rotary_emb.inv_freq", "U8", {1}, "x"});
  for (size_t i = 0; i < 16; ++i) {
    tensors.back().data.replace(4 * i, 4, Packed(static_cast<float>(i)));
  }
  WriteFile(folder / "model.safetensors", SafetensorsBytes(tensors));
  const auto model = ModelFile::Open(folder.path());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->weights().final_norm.at(15), 15.0f);
}

using Damage = testing::Damage<std::function<void(GgufSpec&)>>;

class WeightsDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(WeightsDamage, IsOneClearSentence) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  GetParam().change(spec);
  const Error error = testing::ErrorOf(OpenSpec(folder, spec));
  EXPECT_EQ(error.message.find(folder / "model.gguf: "), 0u) << error.message;
  testing::ExpectRefused(error, GetParam());
}

const Damage kDamages[] = {
    {"MissingTensor", [](GgufSpec& s) { s.RemoveTensor("blk.1.ffn_up.weight"); },
     "tensor blk.1.ffn_up.weight is missing"},
    {"MoreLayersThanTensors", [](GgufSpec& s) { s.SetU32("llama.block_count", 1024); },
     "tensor blk.2.attn_q.weight is missing"},
    {"MatrixTurned",
     [](GgufSpec& s) {
       s.FindTensor("blk.0.ffn_down.weight").dims = {16, 24};
     },
     "tensor blk.0.ffn_down.weight: expected the shape [16, 24], got [24, 16]"},
    {"VectorAsMatrix",
     [](GgufSpec& s) {
       s.FindTensor("output_norm.weight").dims = {16, 1};
     },
     "tensor output_norm.weight: expected the shape [16], got [1, 16]"},
    {"TensorWithoutElements", [](GgufSpec& s) { s.FindTensor("output_norm.weight").dims = {0}; },
     "tensor output_norm.weight: expected the shape [16], got [0]"},
    {"NormsOfAHole",
     [](GgufSpec& s) {
       s.SetU32("llama.block_count", 1024);
       s.SetU32("llama.feed_forward_length", 1 << 16);
     },
     "expected at most 67108864 elements of norms and biases, got", ErrorCode::kUnsupported},
    {"KvHeadsAtOddsWithTheTensor",
     [](GgufSpec& s) { s.SetU32("llama.attention.head_count_kv", 2); },
     "tensor blk.0.attn_k.weight: expected the shape [16, 16], got [8, 16]"},
    {"TypeThatIsNotComputedWith",
     [](GgufSpec& s) { s.FindTensor("blk.0.attn_q.weight").type = 26; },
     "Q6_K, IQ4_NL or IQ4_XS, got I32", ErrorCode::kUnsupported},
};

INSTANTIATE_TEST_SUITE_P(All, WeightsDamage, ::testing::ValuesIn(kDamages), testing::DamageName());

// A folder of the tiny model whose config ties the embedding, or not, with these tensors.
Result<ModelFile> OpenFolder(const TempFolder& folder, bool is_tied,
                             const std::vector<SafetensorsTensor>& tensors) {
  nlohmann::json config = testing::TinyConfigJson();
  config["tie_word_embeddings"] = is_tied;
  WriteFile(folder / "config.json", config.dump());
  WriteFile(folder / "model.safetensors", SafetensorsBytes(tensors));
  return ModelFile::Open(folder.path());
}

TEST(Weights, OfATiedModelMayBeStoredAsTheOutputAlone) {
  const TempFolder folder;
  auto tensors = TinySafetensors();
  tensors.front().name = "lm_head.weight";
  const auto model = OpenFolder(folder, true, tensors);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->weights().output.data, model->weights().embedding.data);
  const auto untied = OpenFolder(folder, false, tensors);
  ASSERT_FALSE(untied.has_value());
  EXPECT_NE(untied.error().message.find("model.embed_tokens.weight is missing"), std::string::npos);
}

TEST(Weights, OfATiedModelMayHaveAnOutputOfTheirOwn) {
  const TempFolder folder;
  auto tensors = TinySafetensors();
  tensors.push_back({"lm_head.weight", "F32", {5, 16}, std::string(320, 'x')});
  const auto model = OpenFolder(folder, true, tensors);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(*reinterpret_cast<const char*>(model->weights().output.data), 'x');
  EXPECT_NE(model->weights().output.data, model->weights().embedding.data);
}

TEST(Weights, OfAnUntiedModelNeedAnOutput) {
  const TempFolder folder;
  const auto model = OpenFolder(folder, false, TinySafetensors());
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message,
            (folder / "model.safetensors") +
                ": tensor lm_head.weight is missing: expected it, or tie_word_embeddings true in "
                "config.json");
}

TEST(Weights, WantTheBiasesThatTheConfigPromises) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  nlohmann::json config = testing::TinyConfigJson();
  config["attention_bias"] = true;
  WriteFile(folder / "config.json", config.dump());
  const auto model = ModelFile::Open(folder.path());
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("model.layers.0.self_attn.q_proj.bias is missing"),
            std::string::npos)
      << model.error().message;
}

}  // namespace
}  // namespace kvick
