// Real vocabularies against the ids that llama.cpp gives.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/files_testing.h"
#include "formats/json.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_hf.h"

namespace kvick {
namespace {

using Ids = std::vector<int32_t>;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

std::string TokenizersFolder() {
  const std::string models = testing::TestModelsFolder();
  if (models.empty()) return "";
  const std::filesystem::path folder = std::filesystem::path(models).parent_path() / "tokenizers";
  return std::filesystem::is_directory(folder) ? folder.string() : "";
}

class GoldenTokens : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = TokenizersFolder();
    if (folder_.empty()) GTEST_SKIP() << "no folder tokenizers beside the test models";
  }

  Result<Tokenizer> FromGguf(const std::string& name) const {
    return GgufFile::Open(folder_ + "/" + name).and_then(TokenizerFromGguf);
  }

  // Lines of {"text": ..., "ids": [...]}, each in both directions.
  void CheckLines(const Result<Tokenizer>& tokenizer, const std::string& name) const {
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    const std::string lines = testing::ReadFile(folder_ + "/" + name);
    int num_lines = 0;
    for (size_t begin = 0; begin < lines.size(); ++num_lines) {
      const size_t end = lines.find('\n', begin);
      const auto line = ParseJson(std::string_view(lines).substr(begin, end - begin), name);
      ASSERT_TRUE(line.has_value()) << line.error().message;
      const auto text = (*line)["text"].get<std::string>();
      const auto ids = (*line)["ids"].get<Ids>();
      EXPECT_EQ(*tokenizer->Encode(text, kPlain), ids) << line->dump();
      EXPECT_EQ(tokenizer->Decode(ids), text) << line->dump();
      begin = end + 1;
    }
    EXPECT_EQ(num_lines, 197);
  }

  std::string folder_;
};

TEST_F(GoldenTokens, Llama2FromGguf) { CheckLines(FromGguf("llama-spm.gguf"), "llama-spm.jsonl"); }

TEST_F(GoldenTokens, Llama3FromGguf) { CheckLines(FromGguf("llama-bpe.gguf"), "llama-bpe.jsonl"); }

TEST_F(GoldenTokens, Llama3FromHuggingFace) {
  const auto tokenizer = TokenizerFromHf(folder_ + "/llama3-hf/tokenizer.json",
                                         folder_ + "/llama3-hf/tokenizer_config.json");
  CheckLines(tokenizer, "llama-bpe.jsonl");
  EXPECT_EQ(tokenizer->bos_id(), 128000);
  EXPECT_EQ(tokenizer->eos_ids(), (Ids{128001, 128009}));
}

TEST_F(GoldenTokens, Llama3PutsBosBeforeATextByDefault) {
  const auto tokenizer = FromGguf("llama-bpe.gguf");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->Encode("Hello world<|eot_id|>"), (Ids{128000, 9906, 1917, 128009}));
}

// The two files of Llama 3 split by different expressions and must agree on any text.
TEST_F(GoldenTokens, ABookDecodesBackAndBothFilesOfLlama3Agree) {
  const std::string book =
      testing::ReadFile(folder_ + "/../corpora/war-and-peace.txt").substr(0, 100'000);
  ASSERT_FALSE(book.empty());
  const auto gguf = FromGguf("llama-bpe.gguf");
  const auto hf = TokenizerFromHf(folder_ + "/llama3-hf/tokenizer.json", std::nullopt);
  const auto llama2 = FromGguf("llama-spm.gguf");
  ASSERT_TRUE(gguf && hf && llama2);
  const Ids ids = *gguf->Encode(book, kPlain);
  EXPECT_EQ(*hf->Encode(book, kPlain), ids);
  EXPECT_EQ(gguf->Decode(ids), book);
  EXPECT_EQ(llama2->Decode(*llama2->Encode(book)), book);
}

TEST(GoldenStories, EncodesAPromptAndDecodesIt) {
  const std::string models = testing::TestModelsFolder();
  if (models.empty()) GTEST_SKIP() << testing::kNoTestModels;
  const auto tokenizer = GgufFile::Open(models + "/stories260K.gguf").and_then(TokenizerFromGguf);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->Encode("Once upon a time"), (Ids{1, 403, 407, 261, 378}));
  EXPECT_EQ(tokenizer->Decode(Ids{1, 403, 407, 261, 378}), "Once upon a time");
  EXPECT_EQ(tokenizer->eos_ids(), Ids{2});
}

}  // namespace
}  // namespace kvick
