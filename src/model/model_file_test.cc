#include "model/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "formats/files_testing.h"
#include "kvick/model.h"
#include "model/tiny_llama_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::GgufSpec;
using testing::SafetensorsBytes;
using testing::TempFolder;
using testing::TinyGguf;
using testing::TinySafetensors;
using testing::WriteFile;

TEST(ModelFile, IsRefusedWhenCutAtAnyByte) {
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

TEST(ModelFile, SurvivesRandomDamage) {
  const auto copy = [](const TempFolder& folder, const std::string& model, const char* file) {
    WriteFile(folder / file, testing::ReadFile(testing::TestModel(model) + "/" + file));
  };
  const TempFolder folder;
  WriteFile(folder / "model.gguf", testing::ReadFile(testing::TestModel("tiny-words.gguf")));
  FlipAndOpen(folder / "model.gguf", 200);
  copy(folder, "tiny-words-hf", "config.json");
  copy(folder, "tiny-words-hf", "model.safetensors");
  FlipAndOpen(folder / "model.safetensors", 200);
  FlipAndOpen(folder / "config.json", 200);
  const TempFolder shards;
  for (const char* file : {"config.json", "model-00001-of-00002.safetensors",
                           "model-00002-of-00002.safetensors", "model.safetensors.index.json"}) {
    copy(shards, "tiny-bf16-sharded", file);
  }
  FlipAndOpen(shards / "model.safetensors.index.json", 100);
}

TEST(ModelFile, OpensTheTestModels) {
  for (const char* name : {"tiny-words.gguf", "tiny-words-hf", "tiny-bf16-sharded", "tiny-f16-tied",
                           "tiny-f32-hd128", "tiny-q8_0.gguf"}) {
    const auto model = ModelFile::Open(testing::TestModel(name));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ(static_cast<int64_t>(model->weights().layers.size()), model->spec().num_layers());
  }
}

TEST(ModelFile, GenerationConfigSaysWhatEndsAText) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  EXPECT_EQ(ModelFile::Open(folder.path())->spec().eos_ids, (std::vector<int32_t>{2}));
  WriteFile(folder / "generation_config.json", R"({"eos_token_id": [3, 4]})");
  EXPECT_EQ(ModelFile::Open(folder.path())->spec().eos_ids, (std::vector<int32_t>{3, 4}));
  WriteFile(folder / "generation_config.json", R"({"temperature": 0.6})");
  EXPECT_EQ(ModelFile::Open(folder.path())->spec().eos_ids, (std::vector<int32_t>{2}));
  WriteFile(folder / "generation_config.json", R"({"eos_token_id": [77, 3]})");
  EXPECT_EQ(ModelFile::Open(folder.path())->spec().eos_ids, (std::vector<int32_t>{3}));
  WriteFile(folder / "generation_config.json", R"({"eos_token_id": "</s>"})");
  EXPECT_EQ(
      ModelFile::Open(folder.path()).error().message,
      (folder / "generation_config.json") + ": eos_token_id: expected a token id, got \"</s>\"");
  WriteFile(folder / "generation_config.json", "[]");
  EXPECT_EQ(ModelFile::Open(folder.path()).error().message,
            (folder / "generation_config.json") + ": expected an object, got an array");
}

TEST(ModelFile, NamesTheFileOfTheFolderThatIsWrong) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  WriteFile(folder / "config.json", R"({"model_type": "llama"})");
  EXPECT_EQ(ModelFile::Open(folder.path()).error().message,
            (folder / "config.json") + ": num_hidden_layers is missing");
  nlohmann::json config = testing::TinyConfigJson();
  config["vocab_size"] = 6;
  WriteFile(folder / "config.json", config.dump());
  EXPECT_EQ(ModelFile::Open(folder.path()).error().message,
            (folder / "model.safetensors") +
                ": tensor model.embed_tokens.weight: expected the shape [6, 16], got [5, 16]");
}

TEST(ModelFile, AsksForTheFolderOfAFile) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  for (const char* name : {"model.safetensors", "config.json"}) {
    EXPECT_EQ(ModelFile::Open(folder / name).error().message,
              (folder / name) +
                  ": expected a GGUF file or a Hugging Face folder, got a file of a folder: give "
                  "the folder, " +
                  folder.path());
  }
  EXPECT_EQ(ModelFile::Open(folder / "none.safetensors").error().code, ErrorCode::kNotFound);
}

TEST(ModelFile, ReadsAConfigAsPythonWritesIt) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  std::string config = testing::TinyConfigJson().dump();
  config.insert(1, R"("unused":[Infinity,-Infinity,NaN],)");
  WriteFile(folder / "config.json", config);
  EXPECT_TRUE(ModelFile::Open(folder.path()).has_value());
  config.insert(1, R"("rope_scaling":{"type":"linear","factor":Infinity},)");
  WriteFile(folder / "config.json", config);
  EXPECT_EQ(
      ModelFile::Open(folder.path()).error().message,
      (folder / "config.json") + ": rope_scaling.factor: expected a finite number, got Infinity");
}

TEST(Model, OpensWithoutATokenizerThatItCanRead) {
  const TempFolder folder;
  testing::WriteTinyFolder(folder);
  const auto open = [&] { return Model::Open(folder.path()).value(); };
  EXPECT_EQ(open()->tokenizer_status().error().code, ErrorCode::kNotFound);
  WriteFile(folder / "tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {}}})");
  const auto unsupported = open();
  EXPECT_FALSE(unsupported->has_tokenizer());
  const Error error = unsupported->tokenizer_status().error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message.find(folder / "tokenizer.json: "), 0u) << error.message;
  EXPECT_EQ(unsupported->Encode("a").error().message, error.message);
  EXPECT_EQ(unsupported->Decode(std::vector<int32_t>{1}).error().message, error.message);
  EXPECT_EQ(TextStream(*unsupported).Append(3), "3 ");
  WriteFile(folder / "tokenizer.json", "{");
  EXPECT_EQ(open()->tokenizer_status().error().code, ErrorCode::kCorrupt);
}

TEST(Model, OpensAGgufWhoseTokenTypesAreAHole) {
  const TempFolder folder;
  GgufSpec spec = TinyGguf();
  constexpr uint64_t kNumTypes = 200'000'000;
  spec.Set("tokenizer.ggml.token_type", GgufType::kArray,
           testing::PackedArray(GgufType::kU8, kNumTypes, ""));
  // The last entry: the hole lies between it and the tensors.
  const std::string head = spec.Build();
  const size_t hole = head.find("token_embd.weight") - sizeof(uint64_t);
  WriteFile(folder / "model.gguf", head.substr(0, hole));
  std::filesystem::resize_file(folder / "model.gguf", hole + kNumTypes);
  std::ofstream(folder / "model.gguf", std::ios::binary | std::ios::app)
      << head.substr(hole) << std::string(testing::TinyGguf().Build().size(), '\0');
  const int64_t before = PrivateBytes();
  const auto model = Model::Open(folder / "model.gguf");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->tokenizer_status().error().code, ErrorCode::kUnsupported);
  EXPECT_LT(PrivateBytes() - before, 8 << 20);
}

}  // namespace
}  // namespace kvick
