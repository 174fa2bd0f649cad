#include "formats/tokenizer_gguf.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/gguf_testing.h"
#include "formats/sentencepiece_model.h"
#include "formats/tokenizer_testing.h"

namespace kvick {
namespace {

using testing::AsBytes;
using testing::GgufSpec;
using testing::Packed;
using testing::PackedArray;
using Ids = std::vector<int32_t>;

void SetTypes(GgufSpec& spec, const std::vector<TokenType>& types) {
  std::string numbers;
  for (TokenType type : types) numbers += Packed(static_cast<int32_t>(type) + 1);
  spec.Set("tokenizer.ggml.token_type", GgufType::kArray,
           PackedArray(GgufType::kI32, types.size(), numbers));
}

void SetScores(GgufSpec& spec, const std::vector<double>& scores) {
  std::string numbers;
  for (const double score : scores) numbers += Packed(static_cast<float>(score));
  spec.Set("tokenizer.ggml.scores", GgufType::kArray,
           PackedArray(GgufType::kF32, scores.size(), numbers));
}

void SetBool(GgufSpec& spec, std::string_view key, uint8_t value) {
  spec.Set(key, GgufType::kBool, Packed(value));
}

GgufSpec SentencePieceSpec() {
  const TokenizerData data = testing::SmallSentencePiece();
  GgufSpec spec;
  spec.SetString("tokenizer.ggml.model", "llama");
  spec.SetStrings("tokenizer.ggml.tokens", data.pieces);
  SetScores(spec, data.scores);
  SetTypes(spec, data.types);
  return spec;
}

GgufSpec Gpt2Spec(std::string_view pre) {
  const TokenizerData data = testing::SmallByteLevel();
  GgufSpec spec;
  spec.SetString("tokenizer.ggml.model", "gpt2");
  if (!pre.empty()) spec.SetString("tokenizer.ggml.pre", pre);
  spec.SetStrings("tokenizer.ggml.tokens", data.pieces);
  SetTypes(spec, data.types);
  std::vector<std::string> merges;
  for (const MergeRule& merge : data.merges) merges.push_back(merge.left + " " + merge.right);
  spec.SetStrings("tokenizer.ggml.merges", merges);
  return spec;
}

Result<Tokenizer> Load(const GgufSpec& spec) {
  const std::string bytes = spec.Build();
  return GgufFile::Parse(AsBytes(bytes)).and_then(TokenizerFromGguf);
}

Error LoadError(const GgufSpec& spec) { return testing::ErrorOf(Load(spec)); }

// "\u2581b" is not in the text as it is typed, but the text becomes it.
TEST(TokenizerFromGguf, UserDefinedPiecesMayComeFromMerging) {
  TokenizerData data = testing::SmallSentencePiece();
  const std::string piece = std::string(kSpaceMarker) + "b";
  const int32_t id = testing::AddToken(data, piece, TokenType::kUserDefined, -1);
  GgufSpec spec = SentencePieceSpec();
  spec.SetStrings("tokenizer.ggml.tokens", data.pieces);
  SetScores(spec, data.scores);
  SetTypes(spec, data.types);
  EXPECT_EQ(*Load(spec)->Encode("a b"), (Ids{1, 266, id}));
}

TEST(TokenizerFromGguf, ReadsSentencePiece) {
  const auto tokenizer = Load(SentencePieceSpec());
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->Encode("abc"), (Ids{1, 266, 264}));  // BOS and the space by default
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_ids(), Ids{2});
}

TEST(TokenizerFromGguf, TheFileDecidesWhatIsPutAroundAText) {
  GgufSpec spec = SentencePieceSpec();
  SetBool(spec, "tokenizer.ggml.add_bos_token", 0);
  SetBool(spec, "tokenizer.ggml.add_eos_token", 1);
  SetBool(spec, "tokenizer.ggml.add_space_prefix", 0);
  spec.SetU32("tokenizer.ggml.eos_token_id", 260);
  const auto tokenizer = Load(spec);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->Encode("b"), (Ids{261, 260}));
  EXPECT_EQ(tokenizer->Decode(Ids{259, 261}), " b");
}

// Every merge of two of these bytes is in the list, so that the tokens show where words end.
std::string Words(std::string_view pre, std::string_view text) {
  GgufSpec spec = Gpt2Spec(pre);
  TokenizerData data = testing::SmallByteLevel();
  std::vector<std::string> merges;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t end = begin + 2; end <= text.size(); ++end) {
      const std::string piece = testing::SpellByteLevel(text.substr(begin, end - begin));
      const std::string left = testing::SpellByteLevel(text.substr(begin, end - begin - 1));
      const std::string right = testing::SpellByteLevel(text.substr(end - 1, 1));
      testing::AddToken(data, piece, TokenType::kNormal);
      merges.push_back(left + " " + right);
    }
  }
  spec.SetStrings("tokenizer.ggml.tokens", data.pieces);
  spec.SetStrings("tokenizer.ggml.merges", merges);
  SetTypes(spec, data.types);
  const auto tokenizer = Load(spec);
  if (!tokenizer) return tokenizer.error().message;
  std::string words;
  const Ids ids = *tokenizer->Encode(text);
  for (int32_t id : ids) {
    words += words.empty() ? "" : "|";
    words += tokenizer->TokenBytes(id);
  }
  return words;
}

TEST(TokenizerFromGguf, EveryPreCutsItsOwnWay) {
  const std::string_view text = "I'LL pay $1234\n";
  EXPECT_EQ(Words("llama-bpe", text), "I|'LL| pay| $|123|4|\n");
  EXPECT_EQ(Words("llama3", text), "I|'LL| pay| $|123|4|\n");
  EXPECT_EQ(Words("qwen2", text), "I|'LL| pay| $|1|2|3|4|\n");
  EXPECT_EQ(Words("gpt-2", text), "I|'|LL| pay| $|1234|\n");
  EXPECT_EQ(Words("smollm", text), "I|'|LL| pay| $|1|2|3|4|\n");
  EXPECT_EQ(Words("default", text), "I|'|LL| pay| |$|123|4|\n");
  EXPECT_EQ(Words("", text), Words("default", text));
}

// Words by llama.cpp.
TEST(TokenizerFromGguf, ModelFamiliesCutTheirOwnWay) {
  const std::string_view text = "He's ABcd, 12345";
  EXPECT_EQ(Words("tekken", text), "He|'s| ABcd|,| |1|2|3|4|5");
  EXPECT_EQ(Words("gpt-4o", text), "He's| ABcd|,| |123|45");
  EXPECT_EQ(Words("kimi-k2", text), "He's| ABcd|,| |123|45");
  EXPECT_EQ(Words("tiny_aya", text), "He's| ABcd|,| |12|345");
  EXPECT_EQ(Words("superbpe", text), "He's ABcd, |12|345");
  EXPECT_EQ(Words("smaug-bpe", text), "He|'s| ABcd|,| |123|45");
  EXPECT_EQ(Words("deepseek-llm", text), "He|'|s| ABcd|,| |12345");
  EXPECT_EQ(Words("deepseek-coder", text), "He|'|s| ABcd|,| |1|2|3|4|5");
  EXPECT_EQ(Words("deepseek-v3", text), "He|'s| ABcd|,| |123|45");
  EXPECT_EQ(Words("falcon", text), "He|'|s| ABcd|,| |123|45");
  EXPECT_EQ(Words("bloom", text), "He's| ABcd|,| 12345");
  EXPECT_EQ(Words("viking", text), "He's| ABcd|,| |1|2|3|4|5");
}

TEST(TokenizerFromGguf, ALongRunOfDigitsIsCutInLinearTime) {
  const std::string digits(300'000, '7');
  for (const char* pre : {"superbpe", "tiny_aya", "afmoe"}) {
    const auto tokenizer = Load(Gpt2Spec(pre));
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    EXPECT_EQ(tokenizer->Encode(digits)->size(), digits.size()) << pre;
  }
}

TEST(TokenizerFromGguf, AMissingPreIsTheDefault) {
  GgufSpec spec = Gpt2Spec("");
  spec.SetU32("tokenizer.ggml.bos_token_id", 262);
  EXPECT_EQ(*Load(spec)->Encode("a"), Ids{'a'});  // no BOS, as there is for llama-bpe
  spec = Gpt2Spec("llama-bpe");
  spec.SetU32("tokenizer.ggml.bos_token_id", 262);
  EXPECT_EQ(*Load(spec)->Encode("a"), (Ids{262, 'a'}));
}

TEST(TokenizerFromGguf, AFileWithoutTokenizerIsNotFound) {
  GgufSpec spec;
  spec.SetString("general.name", "x");
  EXPECT_EQ(LoadError(spec).code, ErrorCode::kNotFound);
  spec.SetString("tokenizer.ggml.model", "none");
  EXPECT_EQ(LoadError(spec).code, ErrorCode::kNotFound);
  EXPECT_EQ(LoadError(spec).message, "gguf: the file has no tokenizer");
}

TEST(TokenizerFromGguf, NamesWhatItDoesNotKnow) {
  GgufSpec spec = SentencePieceSpec();
  spec.SetString("tokenizer.ggml.model", "bert");
  EXPECT_EQ(LoadError(spec).message,
            "gguf: tokenizer.ggml.model: expected \"llama\", \"gpt2\" or \"t5\", got \"bert\"");
  const Error error = LoadError(Gpt2Spec("no-such-pre"));
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message,
            "gguf: tokenizer.ggml.pre: expected a pre-tokenizer listed in docs/formats.md, got "
            "\"no-such-pre\"");
}

TEST(TokenizerFromGguf, NamesAMissingKey) {
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.scores"}) {
    GgufSpec spec = SentencePieceSpec();
    spec.Remove(key);
    EXPECT_NE(LoadError(spec).message.find(key), std::string::npos) << LoadError(spec).message;
    EXPECT_EQ(LoadError(spec).code, ErrorCode::kCorrupt) << key;
  }
  GgufSpec spec = Gpt2Spec("llama-bpe");
  spec.Remove("tokenizer.ggml.merges");
  EXPECT_EQ(LoadError(spec).message, "gguf: tokenizer.ggml.merges is missing");
}

TEST(TokenizerFromGguf, RefusesBadValues) {
  const auto error = [](auto change) {
    GgufSpec spec = SentencePieceSpec();
    change(spec);
    return LoadError(spec).message;
  };
  const TokenizerData good = testing::SmallSentencePiece();
  EXPECT_EQ(error([&](GgufSpec& spec) {
              SetScores(spec, {1, 2});
            }),
            "gguf: tokenizer: expected 267 scores, one for each token, got 2");
  EXPECT_EQ(error([&](GgufSpec& spec) { SetTypes(spec, {TokenType::kNormal}); }),
            "gguf: tokenizer: expected 267 token types, one for each token, got 1");
  EXPECT_EQ(error([&](GgufSpec& spec) {
              std::vector<double> scores = good.scores;
              scores[5] = std::numeric_limits<float>::quiet_NaN();
              SetScores(spec, scores);
            }),
            "gguf: score of token 5: expected a number, got NaN");
  EXPECT_EQ(error([&](GgufSpec& spec) {
              std::vector<TokenType> types = good.types;
              types[5] = static_cast<TokenType>(6);
              SetTypes(spec, types);
            }),
            "gguf: an element of tokenizer.ggml.token_type: expected 1 to 6, got 7");
  EXPECT_EQ(error([&](GgufSpec& spec) {
              std::vector<std::string> pieces = good.pieces;
              pieces[5] = "<0x-1>";
              spec.SetStrings("tokenizer.ggml.tokens", pieces);
            }),
            "gguf: token 5 of type byte: expected <0x00> to <0xFF>, got \"<0x-1>\"");
  EXPECT_EQ(error([&](GgufSpec& spec) {
              spec.Set("tokenizer.ggml.bos_token_id", GgufType::kI32, testing::Packed(-1));
            }),
            "gguf: tokenizer.ggml.bos_token_id: expected a token id, got -1");
  EXPECT_EQ(error([&](GgufSpec& spec) { spec.SetStrings("tokenizer.ggml.tokens", {}); }),
            "gguf: tokenizer: expected 1 to 2147483647 tokens, got 0");
}

TEST(TokenizerFromGguf, RefusesBadMerges) {
  for (const char* merge : {"", "a", "ab", "a ", " a"}) {
    GgufSpec spec = Gpt2Spec("llama-bpe");
    spec.SetStrings("tokenizer.ggml.merges", {merge});
    EXPECT_NE(LoadError(spec).message.find("tokenizer.ggml.merges[0]: expected"), std::string::npos)
        << merge;
  }
  GgufSpec spec = Gpt2Spec("llama-bpe");
  spec.SetStrings("tokenizer.ggml.merges", {"x y"});
  EXPECT_EQ(LoadError(spec).message,
            "gguf: merge 0: expected two tokens that make a third, got \"x\" and \"y\"");
}

// What llama.cpp's converter writes of a SentencePiece model.
GgufSpec UnigramSpec(const SentencePieceModel& model) {
  GgufSpec spec;
  spec.SetString("tokenizer.ggml.model", "t5");
  std::vector<std::string> pieces;
  std::vector<double> scores;
  std::string types;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    pieces.push_back(piece.text);
    scores.push_back(piece.score);
    types += Packed(static_cast<int32_t>(piece.type));
  }
  spec.SetStrings("tokenizer.ggml.tokens", pieces);
  SetScores(spec, scores);
  spec.Set("tokenizer.ggml.token_type", GgufType::kArray,
           PackedArray(GgufType::kI32, pieces.size(), types));
  spec.Set(
      "tokenizer.ggml.precompiled_charsmap", GgufType::kArray,
      PackedArray(GgufType::kU8, model.precompiled_charsmap.size(), model.precompiled_charsmap));
  SetBool(spec, "tokenizer.ggml.add_space_prefix", 1);
  SetBool(spec, "tokenizer.ggml.remove_extra_whitespaces", 1);
  spec.SetU32("tokenizer.ggml.eos_token_id", 2);
  spec.SetU32("tokenizer.ggml.unknown_token_id", 0);
  return spec;
}

TEST(TokenizerFromGguf, UnigramEncodesAsSentencePieceDoes) {
  const std::string folder = std::string(KVICK_RECORDED_TOKENIZERS) + "/sentencepiece/";
  const std::string bytes = testing::ReadFile(folder + "unigram-normalized.model");
  const auto model = SentencePieceModel::Parse(testing::AsBytes(bytes), "model");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Tokenizer tokenizer = *Load(UnigramSpec(*model));
  const auto cases = nlohmann::json::parse(testing::ReadFile(folder + "unigram-normalized.json"));
  EXPECT_GT(cases.size(), 150u);
  for (const nlohmann::json& test : cases) {
    const std::string text = test["text"];
    if (text.find(kSpaceMarker) != std::string::npos) continue;  // no space to llama.cpp
    std::vector<int32_t> expected = test["ids"];
    expected.push_back(2);  // </s>, which llama.cpp puts behind a text
    EXPECT_EQ(*tokenizer.Encode(text), expected) << test["text"].dump();
  }
}

TEST(TokenizerFromGguf, RefusesADamagedCharsmap) {
  const SentencePieceModel model{.pieces = {{"<unk>", 0, SentencePieceModel::PieceType::kUnknown}}};
  GgufSpec spec = UnigramSpec(model);
  EXPECT_TRUE(Load(spec).has_value());
  spec.Set("tokenizer.ggml.precompiled_charsmap", GgufType::kArray,
           PackedArray(GgufType::kU8, 5, "\x08" + std::string(4, '\0')));
  const auto tokenizer = Load(spec);
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace kvick
