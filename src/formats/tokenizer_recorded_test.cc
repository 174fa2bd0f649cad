#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files_testing.h"
#include "formats/tokenizer_hf.h"

// What the library tokenizers made of some 200 strings, for the steps of well-known tokenizers:
// tests/data/tokenizers/README.md says how it was recorded.
namespace kvick {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

json ReadRecorded(const std::string& name) {
  return json::parse(testing::ReadFile(fmt::format("{}/{}.json", KVICK_RECORDED_TOKENIZERS, name)));
}

// The names of the files that start with `prefix`, without it.
std::vector<std::string> Recorded(const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(KVICK_RECORDED_TOKENIZERS)) {
    const std::string name = file.path().stem().string();
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

// tokenizer.json of `steps` over the vocabulary called `name`.
json WithVocabulary(json steps, const std::string& name) {
  const json vocabulary = ReadRecorded("vocabulary-" + name);
  if (vocabulary.contains("scores")) {
    json vocab = json::array();
    for (size_t id = 0; id < vocabulary["pieces"].size(); ++id) {
      vocab.push_back(json::array({vocabulary["pieces"][id], vocabulary["scores"][id]}));
    }
    steps["model"]["vocab"] = std::move(vocab);
    return steps;
  }
  json vocab = json::object();
  for (const json& piece : vocabulary["pieces"]) {
    vocab.emplace(piece.get<std::string>(), vocab.size());
  }
  steps["model"]["vocab"] = std::move(vocab);
  steps["model"]["merges"] = vocabulary["merges"];
  return steps;
}

void CheckEncoding(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                   const json& encoded) {
  ASSERT_EQ(texts.size(), encoded.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Result<Ids> ids = tokenizer.Encode(texts[i]);
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_EQ(*ids, encoded[i].get<Ids>()) << json(texts[i]).dump();
  }
}

std::string WithToken(const std::string& text, const std::string& content) {
  constexpr std::string_view kToken = "TOKEN";
  std::string result = text;
  for (size_t pos = 0; (pos = result.find(kToken, pos)) != std::string::npos;) {
    result.replace(pos, kToken.size(), content);
    pos += content.size();
  }
  return result;
}

TEST(RecordedTokens, ChainsOfStepsEncodeAndDecodeAsTheLibraryDoes) {
  const std::vector<std::string> texts = ReadRecorded("strings")["strings"];
  const std::vector<std::string> names = Recorded("chain-");
  EXPECT_GE(names.size(), 30u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const json chain = ReadRecorded("chain-" + name);
    const auto tokenizer =
        TokenizerFromHfJson(WithVocabulary(chain["steps"], chain["vocabulary"]), nullptr);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    CheckEncoding(*tokenizer, texts, chain["encoded"]);
    for (const json& decoded : chain["decoded"]) {
      const Ids ids = decoded["ids"];
      EXPECT_EQ(tokenizer->Decode(ids), decoded["text"].get<std::string>()) << decoded.dump();
    }
  }
}

TEST(RecordedTokens, AddedTokensEncodeAsTheLibraryDoesWithAnyFlags) {
  const std::vector<std::string> texts = ReadRecorded("strings")["flag_strings"];
  const std::vector<std::string> names = Recorded("flags-");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    const json chain = ReadRecorded("chain-" + name);
    const json base = WithVocabulary(chain["steps"], chain["vocabulary"]);
    const json recorded = ReadRecorded("flags-" + name);
    EXPECT_EQ(recorded["cases"].size() % 32, 0u);
    for (const json& test : recorded["cases"]) {
      SCOPED_TRACE(name + " " + test["added_token"].dump());
      json with_token = base;
      with_token["added_tokens"].push_back(test["added_token"]);
      const auto tokenizer = TokenizerFromHfJson(with_token, nullptr);
      ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
      std::vector<std::string> of_token;
      for (const std::string& text : texts) {
        of_token.push_back(WithToken(text, test["added_token"]["content"]));
      }
      CheckEncoding(*tokenizer, of_token, test["encoded"]);
    }
  }
}

}  // namespace
}  // namespace kvick
