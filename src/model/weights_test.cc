#include "model/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "base/dtype.h"
#include "formats/test_files.h"
#include "model/tiny_llama_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
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

TEST(ModelFile, FindsEveryWeightOfAGguf) {
  const TempFolder folder;
  auto model = OpenSpec(folder, NumberedSpec());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const ModelFile moved = *std::move(model);
  ExpectNumbered(moved.weights());
  EXPECT_NE(moved.gguf(), nullptr);
  EXPECT_EQ(moved.hf_folder(), nullptr);
  EXPECT_EQ(moved.gguf()->GetString("general.name"), "tiny");
}

TEST(ModelFile, FindsEveryWeightOfAFolder) {
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

TEST(ModelFile, UsesAnOutputMatrixAndBiasesWhereThereAreSome) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  std::string bias;
  for (int i = 0; i < 8; ++i) bias += Packed(F32ToF16(static_cast<float>(i)));
  spec.tensors.push_back(
      {.name = "output.weight", .dims = {16, 5}, .data = std::string(320, '\0')});
  spec.tensors.push_back({.name = "blk.1.attn_k.bias", .dims = {8}, .type = 1, .data = bias});
  const auto model = OpenSpec(folder, spec);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_FALSE(model->config().tie_word_embeddings);
  EXPECT_NE(model->weights().output.data, model->weights().embedding.data);
  EXPECT_TRUE(model->weights().layers[0].k_bias.empty());
  EXPECT_EQ(model->weights().layers[1].k_bias, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ModelFile, ReadsVectorsAtAnyAlignment) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  std::vector<SafetensorsTensor> tensors = TinySafetensors();
  tensors.insert(tensors.begin(), {"pad", "U8", {1}, "x"});
  for (size_t i = 0; i < 16; ++i) {
    tensors.back().data.replace(4 * i, 4, Packed(static_cast<float>(i)));
  }
  WriteFile(folder / "model.safetensors", SafetensorsBytes(tensors));
  const auto model = ModelFile::Open(folder.path());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->weights().final_norm.at(15), 15.0f);
}

struct Damage {
  const char* name;
  std::function<void(GgufSpec&)> apply;
  const char* message;
  ErrorCode code = ErrorCode::kCorrupt;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class WeightsDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(WeightsDamage, IsOneClearSentence) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  GetParam().apply(spec);
  const auto model = OpenSpec(folder, spec);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message.find(folder / "model.gguf: "), 0u) << model.error().message;
  EXPECT_NE(model.error().message.find(GetParam().message), std::string::npos)
      << model.error().message;
  EXPECT_EQ(model.error().code, GetParam().code);
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
     "tensor blk.0.ffn_down.weight has the shape [24, 16], [16, 24] is wanted"},
    {"VectorAsMatrix",
     [](GgufSpec& s) {
       s.FindTensor("output_norm.weight").dims = {16, 1};
     },
     "tensor output_norm.weight has the shape [1, 16], [16] is wanted"},
    {"KvHeadsAtOddsWithTheTensor",
     [](GgufSpec& s) { s.SetU32("llama.attention.head_count_kv", 2); },
     "tensor blk.0.attn_k.weight has the shape [8, 16], [16, 16] is wanted"},
    {"TypeThatIsNotComputedWith",
     [](GgufSpec& s) { s.FindTensor("blk.0.attn_q.weight").type = 26; },
     "tensor blk.0.attn_q.weight is I32, only F32, F16, BF16 and Q8_0 are possible",
     ErrorCode::kUnsupported},
};

INSTANTIATE_TEST_SUITE_P(All, WeightsDamage, ::testing::ValuesIn(kDamages),
                         [](const auto& damage) { return damage.param.name; });

TEST(BindWeights, WantsTheBiasesThatTheConfigPromises) {
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

TEST(WholeModel, IsRefusedWhenCutAtAnyByte) {
  const std::string gguf = TinyGguf().Build();
  ASSERT_TRUE(GgufFile::Parse(AsBytes(gguf)).has_value());
  // Within the tensors' bytes, one place is as good as another.
  const size_t infos_end = gguf.find("output_norm.weight") + 64;
  for (size_t size = 0; size < gguf.size(); size += size < infos_end ? 1 : 61) {
    const std::string cut = gguf.substr(0, size);  // its own memory: a sanitizer sees the end
    EXPECT_FALSE(GgufFile::Parse(AsBytes(cut)).has_value()) << "cut at " << size;
  }
  const std::string safetensors = SafetensorsBytes(TinySafetensors());
  ASSERT_TRUE(SafetensorsFile::Parse(AsBytes(safetensors)).has_value());
  const size_t header_end = safetensors.find("}}") + 2;
  for (size_t size = 0; size < safetensors.size(); size += size < header_end ? 1 : 61) {
    const std::string cut = safetensors.substr(0, size);
    EXPECT_FALSE(SafetensorsFile::Parse(AsBytes(cut)).has_value()) << "cut at " << size;
  }
}

// Bytes of private memory that hold data, which excludes mapped files.
int64_t PrivateBytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "RssAnon:") {
      int64_t kib = 0;
      file >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

TEST(ModelFile, TakesNoPrivateMemoryForTheWeights) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  constexpr uint64_t kInner = 1 << 20;
  spec.SetU32("llama.feed_forward_length", kInner);
  // Six matrices of 64 MiB at the end, as a hole in the file.
  std::vector<GgufSpec::Tensor> large;
  uint64_t offset = 1 << 16;
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const std::string name : {"ffn_gate", "ffn_up", "ffn_down"}) {
      GgufSpec::Tensor& tensor = spec.FindTensor(layer + name + ".weight");
      tensor.dims = name == "ffn_down" ? std::vector<uint64_t>{kInner, 16}
                                       : std::vector<uint64_t>{16, kInner};
      tensor.data.clear();
      tensor.offset = offset;
      offset += kInner * 64;
    }
  }
  WriteFile(folder / "model.gguf", spec.Build());
  std::filesystem::resize_file(folder / "model.gguf", offset + (1 << 20));
  const int64_t before = PrivateBytes();
  const auto model = ModelFile::Open(folder / "model.gguf");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_LT(PrivateBytes() - before, 8 << 20);
}

// Opens the bytes of a file with a few of them changed; what comes is a model or an error.
// Most changes hit the header, where they matter.
void FlipAndOpen(const std::string& path, int num_rounds) {
  const std::string original = testing::ReadFile(path);
  ASSERT_FALSE(original.empty()) << path;
  std::mt19937 random(20240607);
  int num_refused = 0;
  for (int round = 0; round < num_rounds; ++round) {
    std::string bytes = original;
    const size_t range = round % 4 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 6000);
    for (int flip = 0; flip <= round % 3; ++flip) {
      bytes[random() % range] = static_cast<char>(random());
    }
    WriteFile(path, bytes);
    const auto model = ModelFile::Open(
        path.ends_with(".gguf") ? path : std::filesystem::path(path).parent_path().string());
    if (!model) {
      ++num_refused;
      EXPECT_FALSE(model.error().message.empty());
      EXPECT_LT(model.error().message.size(), 500u) << model.error().message;
    }
  }
  EXPECT_GT(num_refused, num_rounds / 10);
  WriteFile(path, original);
}

TEST(ModelFile, SurvivesRandomDamageToATrainedModel) {
  const std::string models = testing::TestModelsFolder();
  if (models.empty()) GTEST_SKIP() << testing::kNoTestModels;
  const TempFolder folder;
  WriteFile(folder / "model.gguf", testing::ReadFile(models + "/stories260K.gguf"));
  FlipAndOpen(folder / "model.gguf", 200);
  WriteFile(folder / "config.json", testing::ReadFile(models + "/stories260K-hf/config.json"));
  WriteFile(folder / "model.safetensors",
            testing::ReadFile(models + "/stories260K-hf/model.safetensors"));
  FlipAndOpen(folder / "model.safetensors", 200);
  FlipAndOpen(folder / "config.json", 200);
  const TempFolder shards;
  for (const char* name : {"config.json", "model-00001-of-00002.safetensors",
                           "model-00002-of-00002.safetensors", "model.safetensors.index.json"}) {
    WriteFile(shards / name, testing::ReadFile(models + "/tiny-llama3-gqa4-bf16/" + name));
  }
  FlipAndOpen(shards / "model.safetensors.index.json", 100);
}

TEST(ModelFile, OpensTheTestModels) {
  const std::string models = testing::TestModelsFolder();
  if (models.empty()) GTEST_SKIP() << testing::kNoTestModels;
  for (const char* name : {"stories260K.gguf", "stories260K-hf", "tiny-llama3-gqa4-bf16",
                           "tiny-llama-mha-f16-tied", "tiny-llama-mqa-hd128-f32"}) {
    const auto model = ModelFile::Open(models + "/" + name);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ(static_cast<int64_t>(model->weights().layers.size()), model->config().num_layers);
  }
}

TEST(ModelFile, GenerationConfigSaysWhatEndsAText) {
  const testing::TempFolder folder;
  testing::WriteTinyFolder(folder);
  EXPECT_EQ(ModelFile::Open(folder.path())->config().eos_ids, (std::vector<int32_t>{2}));
  testing::WriteFile(folder / "generation_config.json", R"({"eos_token_id": [3, 4]})");
  EXPECT_EQ(ModelFile::Open(folder.path())->config().eos_ids, (std::vector<int32_t>{3, 4}));
  testing::WriteFile(folder / "generation_config.json", R"({"temperature": 0.6})");
  EXPECT_EQ(ModelFile::Open(folder.path())->config().eos_ids, (std::vector<int32_t>{2}));
  testing::WriteFile(folder / "generation_config.json", R"({"eos_token_id": 77})");
  EXPECT_EQ(ModelFile::Open(folder.path()).error().code, ErrorCode::kCorrupt);
  testing::WriteFile(folder / "generation_config.json", "[]");
  EXPECT_EQ(ModelFile::Open(folder.path()).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace kvick
