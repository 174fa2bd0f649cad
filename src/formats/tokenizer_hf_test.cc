#include "formats/tokenizer_hf.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/tokenizer_testing.h"

namespace kvick {
namespace {

using nlohmann::json;
using testing::SmallByteLevel;
using testing::SmallSentencePiece;
using Ids = std::vector<int32_t>;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

json Vocabulary(const TokenizerData& data) {
  json vocabulary = json::object();
  for (size_t id = 0; id < data.pieces.size(); ++id) {
    const bool added = data.types[id] == TokenType::kUserDefined;
    if (!added) vocabulary[data.pieces[id]] = id;
  }
  return vocabulary;
}

json AddedToken(int32_t id, const std::string& content, bool special) {
  return {{"id", id}, {"content", content}, {"special", special}};
}

// As Llama 3 is laid out, on the small byte-level vocabulary.
json ByteLevelJson() {
  const TokenizerData data = SmallByteLevel();
  json merges = json::array();
  for (const MergeRule& merge : data.merges) merges.push_back(merge.left + " " + merge.right);
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", testing::kSmallSplit}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"added_tokens", {AddedToken(262, "<|end|>", true), AddedToken(263, "<tool>", false)}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
          {"post_processor", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", Vocabulary(data)}, {"merges", merges}}}};
}

// As Llama 2 is laid out, on the small SentencePiece vocabulary.
json SpaceMarkerJson() {
  const TokenizerData data = SmallSentencePiece();
  const std::string marker(kSpaceMarker);
  const json prepend = {{"type", "Prepend"}, {"prepend", marker}};
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", marker}};
  const json single = {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                       {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}};
  return {{"added_tokens",
           {AddedToken(0, "<unk>", true), AddedToken(1, "<s>", true), AddedToken(2, "</s>", true)}},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", {prepend, replace}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", single},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", Vocabulary(data)},
            {"merges", json::array({json::array({"b", "c"}), json::array({marker, "a"})})}}}};
}

json Metaspace(const char* scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", std::string(kSpaceMarker)},
          {"prepend_scheme", scheme},
          {"split", split}};
}

Tokenizer MustLoad(const json& tokenizer, const json& config = nullptr) {
  auto loaded = TokenizerFromHfJson(tokenizer, config);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  return std::move(loaded).value();
}

Error LoadError(const json& tokenizer, const json& config = nullptr) {
  return testing::ErrorOf(TokenizerFromHfJson(tokenizer, config));
}

TEST(TokenizerFromHf, ReadsByteLevel) {
  const Tokenizer tokenizer = MustLoad(ByteLevelJson());
  EXPECT_EQ(*tokenizer.Encode("abc a<tool>"), (Ids{258, 259, 263}));
  EXPECT_EQ(*tokenizer.Encode("<|end|>"), Ids{262});
  EXPECT_EQ(tokenizer.Decode(Ids{258, 259, 262, 263}), "abc a<tool>");
  EXPECT_EQ(tokenizer.bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer.eos_ids(), Ids{262});
}

TEST(TokenizerFromHf, ReadsSpaceMarkersWithByteFallback) {
  const Tokenizer tokenizer = MustLoad(SpaceMarkerJson());
  EXPECT_EQ(*tokenizer.Encode("abc \xC3\xA9"), (Ids{1, 266, 264, 259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.Decode(Ids{1, 266, 264}), "abc");
  EXPECT_EQ(tokenizer.bos_id(), 1);
}

TEST(TokenizerFromHf, ReadsMetaspace) {
  json tokenizer = SpaceMarkerJson();
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = Metaspace("first", false);
  EXPECT_EQ(*MustLoad(tokenizer).Encode("b<s>b", {.add_special = false}), (Ids{259, 261, 1, 261}));
  tokenizer["pre_tokenizer"] = Metaspace("always", false);
  EXPECT_EQ(*MustLoad(tokenizer).Encode("b<s>b", {.add_special = false}),
            (Ids{259, 261, 1, 259, 261}));
  tokenizer["pre_tokenizer"] = Metaspace("never", true);
  EXPECT_EQ(*MustLoad(tokenizer).Encode(" b", {.add_special = false}), (Ids{259, 261}));
  EXPECT_EQ(MustLoad(tokenizer).Decode(Ids{259, 261}), " b");
}

TEST(TokenizerFromHf, MetaspaceSplitsBeforeEachMarker) {
  const std::string marker(kSpaceMarker);
  json tokenizer = SpaceMarkerJson();
  tokenizer["model"]["vocab"][marker + marker] = 267;
  tokenizer["model"]["merges"].push_back(json::array({marker, marker}));
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = Metaspace("never", false);
  EXPECT_EQ(*MustLoad(tokenizer).Encode("b  c", kPlain), (Ids{261, 267, 262}));
  tokenizer["pre_tokenizer"] = Metaspace("never", true);
  EXPECT_EQ(*MustLoad(tokenizer).Encode("b  c", kPlain), (Ids{261, 259, 259, 262}));
}

TEST(TokenizerFromHf, ReadsDigitsAndStringsToSplitAt) {
  json tokenizer = ByteLevelJson();
  json& steps = tokenizer["pre_tokenizer"]["pretokenizers"];
  steps[0] = {{"type", "Split"}, {"pattern", {{"String", "a.c"}}}, {"behavior", "Isolated"}};
  // Without the split, abc is one word and one token; "a.c" is no expression that matches it.
  EXPECT_EQ(*MustLoad(tokenizer).Encode("abc", kPlain), Ids{258});
  steps[0]["pattern"]["String"] = "b";
  EXPECT_EQ(*MustLoad(tokenizer).Encode("abc", kPlain), (Ids{'a', 'b', 'c'}));
  steps[0] = {{"type", "Digits"}, {"individual_digits", true}};
  tokenizer["model"]["vocab"]["12"] = 264;
  tokenizer["model"]["merges"].push_back("1 2");
  EXPECT_EQ(*MustLoad(tokenizer).Encode("12", kPlain), (Ids{'1', '2'}));
  steps[0]["individual_digits"] = false;
  EXPECT_EQ(*MustLoad(tokenizer).Encode("12", kPlain), Ids{264});
}

TEST(TokenizerFromHf, ByteLevelMayAddASpaceAndSplitAsGpt2) {
  json tokenizer = ByteLevelJson();
  tokenizer["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  EXPECT_EQ(*MustLoad(tokenizer).Encode("a", kPlain), Ids{259});
  EXPECT_EQ(*MustLoad(tokenizer).Encode(" a1", kPlain), (Ids{259, '1'}));
}

TEST(TokenizerFromHf, TheConfigNamesSpecialTokens) {
  const json config = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}};
  const Tokenizer tokenizer = MustLoad(SpaceMarkerJson(), config);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_ids(), Ids{2});
}

TEST(TokenizerFromHf, TheConfigSwitchesBosAndEos) {
  json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  config["add_bos_token"] = false;
  config["add_eos_token"] = true;
  EXPECT_EQ(MustLoad(SpaceMarkerJson(), config).Encode("a"), (Ids{266, 2}));
  json tokenizer = SpaceMarkerJson();
  tokenizer["post_processor"] = nullptr;
  EXPECT_EQ(*MustLoad(tokenizer).Encode("a"), Ids{266});
  config["add_bos_token"] = true;
  config["add_eos_token"] = nullptr;
  EXPECT_EQ(*MustLoad(tokenizer, config).Encode("a"), (Ids{1, 266}));
}

// Llama's classes replace the post-processor by add_bos_token and add_eos_token.
TEST(TokenizerFromHf, TheClassDecidesWhoPutsBosAndEos) {
  const json names = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  json with_template = SpaceMarkerJson(), without = SpaceMarkerJson();
  without["post_processor"] = nullptr;
  const auto ids = [&](const json& tokenizer, const char* name, const json& add_bos) {
    json config = names;
    config["tokenizer_class"] = name;
    config["add_bos_token"] = add_bos;
    config["add_eos_token"] = add_bos;
    return *MustLoad(tokenizer, config).Encode("a");
  };
  for (const char* name : {"LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer"}) {
    EXPECT_EQ(ids(with_template, name, false), Ids{266}) << name;
    EXPECT_EQ(ids(without, name, true), (Ids{1, 266, 2})) << name;
    EXPECT_EQ(ids(without, name, nullptr), (Ids{1, 266})) << name;
  }
  for (const char* name : {"PreTrainedTokenizerFast", "GPT2Tokenizer", "Qwen2TokenizerFast"}) {
    EXPECT_EQ(ids(with_template, name, false), (Ids{1, 266})) << name;
    EXPECT_EQ(ids(without, name, true), Ids{266}) << name;
  }
}

TEST(TokenizerFromHf, TheConfigAddsTokensAndTheirFlags) {
  json tokenizer = ByteLevelJson();
  const json stripping = {{"content", "<tool>"}, {"lstrip", true}, {"rstrip", true}};
  const json fresh = {{"content", "<new>"}, {"special", true}, {"normalized", false}};
  const json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"added_tokens_decoder", {{"263", stripping}, {"264", fresh}}}};
  EXPECT_EQ(*MustLoad(tokenizer).Encode("a <tool> b<new>", kPlain),
            (Ids{'a', ' ', 263, ' ', 'b', '<', 'n', 'e', 'w', '>'}));
  EXPECT_EQ(*MustLoad(tokenizer, config).Encode("a <tool> b<new>"), (Ids{'a', 263, 'b', 264}));
  EXPECT_EQ(MustLoad(tokenizer, config).Decode(Ids{'a', 263, 264}), "a<tool>");
  EXPECT_EQ(MustLoad(tokenizer, config).Encode("<new>", kPlain)->size(), 5u);
}

TEST(TokenizerFromHf, TheConfigMakesTokensSpecialByNamingThem) {
  json tokenizer = SpaceMarkerJson();
  tokenizer["added_tokens"] = json::array();
  EXPECT_EQ(MustLoad(tokenizer).Encode("</s>", {.add_special = false})->size(), 5u);
  const Tokenizer named = MustLoad(tokenizer, {{"eos_token", "</s>"}});
  EXPECT_EQ(*named.Encode("</s>", {.add_special = false}), Ids{2});
  EXPECT_EQ(named.Decode(Ids{260, 2}), "a");
}

TEST(TokenizerFromHf, RefusesBadAddedTokensInTheConfig) {
  const auto error = [](const json& tokens) {
    return LoadError(ByteLevelJson(), {{"added_tokens_decoder", tokens}}).message;
  };
  EXPECT_EQ(error({{"x", {{"content", "<new>"}}}}),
            "added_tokens_decoder: the id \"x\": expected an integer");
  EXPECT_EQ(error({{"97", {{"content", "<new>"}}}}),
            "added_tokens_decoder.97: expected an id of its own for \"<new>\", got 97, which is "
            "\"a\"");
  EXPECT_NE(error({{"-1", {{"content", "<new>"}}}}).find("got -1"), std::string::npos);
  EXPECT_NE(error({{"264", 3}}).find("content is missing"), std::string::npos);
}

// Normalized tokens are found where the normalizer leads, and come back as they are spelled then.
TEST(TokenizerFromHf, NormalizedTokensAreFoundInTheNormalizedText) {
  json tokenizer = SpaceMarkerJson();
  json token = AddedToken(267, "cab", false);
  token["normalized"] = true;
  tokenizer["added_tokens"].push_back(token);
  const Tokenizer loaded = MustLoad(tokenizer);
  EXPECT_EQ(*loaded.Encode("cab", kPlain), Ids{267});
  EXPECT_EQ(*loaded.Encode("a cab", kPlain), (Ids{266, 267}));
  EXPECT_EQ(*loaded.Encode("acab", kPlain), (Ids{266, 262, 260, 261}));
  EXPECT_EQ(loaded.Decode(Ids{266, 267}), "a cab");
}

TEST(TokenizerFromHf, TheDecoderIsAChain) {
  const std::string marker(kSpaceMarker);
  json tokenizer = SpaceMarkerJson();
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", marker}}}, {"content", " "}};
  const json bytes = {{"type", "ByteFallback"}}, fuse = {{"type", "Fuse"}};
  const auto set = [&](json decoders) {
    tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  };
  const Ids ids = {259, 259, 266, 3 + 0xC3, 3 + 0xA9};
  set({replace, bytes, fuse});
  EXPECT_EQ(MustLoad(tokenizer).Decode(ids), "   a\xC3\xA9");
  set({replace, bytes, fuse, {{"type", "Strip"}, {"content", " "}, {"start", 2}, {"stop", 0}}});
  EXPECT_EQ(MustLoad(tokenizer).Decode(ids), " a\xC3\xA9");
  set({replace, {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}, bytes});
  EXPECT_EQ(MustLoad(tokenizer).Decode(ids), "a\xC3\xA9");
  tokenizer["decoder"] = {{"type", "Metaspace"}, {"replacement", marker}};
  EXPECT_EQ(MustLoad(tokenizer).Decode(Ids{266, 266}), "a a");
  const Tokenizer metaspace = MustLoad(tokenizer);
  Detokenizer rest(metaspace, DecodeFrom::kTextRest);
  EXPECT_EQ(rest.Append(266), " a");
  tokenizer["decoder"]["prepend_scheme"] = "never";
  EXPECT_EQ(MustLoad(tokenizer).Decode(Ids{266, 266}), " a a");
  set({fuse, {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}});
  EXPECT_EQ(LoadError(tokenizer).message, "decoder.stop: expected 0 behind Fuse, got 1");
  set({fuse, replace});
  EXPECT_EQ(LoadError(tokenizer).code, ErrorCode::kUnsupported);
}

TEST(TokenizerFromHf, AHostileExpressionIsAnErrorOfTheText) {
  json tokenizer = ByteLevelJson();
  tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "z|(a+a+)+b";
  const auto ids = MustLoad(tokenizer).Encode(std::string(2000, 'a'));
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code, ErrorCode::kExhausted);
}

TEST(TokenizerFromHf, AChainHasALimitedLength) {
  json tokenizer = ByteLevelJson();
  const json lowercase = {{"type", "Lowercase"}};
  tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  for (int i = 0; i < 64; ++i) tokenizer["normalizer"]["normalizers"].push_back(lowercase);
  EXPECT_EQ(LoadError(tokenizer).message, "normalizer: expected at most 64 steps, got more");
}

TEST(TokenizerFromHf, HolesInTheVocabularyAreNoTokens) {
  json tokenizer = ByteLevelJson();
  tokenizer["added_tokens"].push_back(AddedToken(1000, "<far>", true));
  const Tokenizer loaded = MustLoad(tokenizer);
  EXPECT_EQ(loaded.vocab_size(), 1001);
  EXPECT_EQ(loaded.TokenBytes(999), "");
  EXPECT_EQ(loaded.Decode(Ids{999, 'a', 1000}), "a");
  EXPECT_EQ(*loaded.Encode("<far>"), Ids{1000});
}

struct BadValue {
  const char* pointer;  // where in tokenizer.json
  json value;
  ErrorCode code;
  const char* message;  // a part of it
};

TEST(TokenizerFromHf, RefusesWhatItDoesNotDo) {
  using enum ErrorCode;
  const BadValue values[] = {
      {"/model/type", "WordPiece", kUnsupported,
       "model.type: expected BPE or Unigram, got \"WordPiece\""},
      {"/model/type", "Unigram", kCorrupt, "model.vocab: expected an array, got an object"},
      {"/model/end_of_word_suffix", "</w>", kUnsupported,
       "model.end_of_word_suffix: expected \"\", got \"</w>\""},
      {"/normalizer",
       {{"type", "BertNormalizer"}},
       kUnsupported,
       "normalizer.type: expected ByteLevel, "},
      {"/normalizer", {{"type", "Nmt"}}, kUnsupported, "StripAccents, got \"Nmt\""},
      {"/normalizer",
       {{"type", "Precompiled"}},
       kCorrupt,
       "normalizer.precompiled_charsmap is missing"},
      {"/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "a"}},
       kCorrupt,
       "normalizer.precompiled_charsmap: expected Base64, got \"a\""},
      {"/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "CAAAAAAAAAA="}},
       kCorrupt,
       "precompiled_charsmap: expected a trie of whole units within 8 bytes, got one of 8 bytes"},
      {"/pre_tokenizer",
       {{"type", "BertPreTokenizer"}},
       kUnsupported,
       "WhitespaceSplit, got \"BertPreTokenizer\""},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Kept", kCorrupt,
       "pre_tokenizer.behavior: expected Removed, "},
      {"/post_processor", {{"type", "Other"}}, kUnsupported, "got \"Other\""},
      {"/post_processor",
       {{"type", "TemplateProcessing"}, {"single", json::array()}},
       kUnsupported,
       "post_processor.single: expected one Sequence, got 0"},
      {"/decoder", {{"type", "WordPiece"}}, kUnsupported, "got \"WordPiece\""},
      {"/model", json::array(), kCorrupt, "model: expected an object, got an array"},
      {"/model/vocab", nullptr, kCorrupt, "model.vocab is missing"},
      {"/model/merges", 3, kCorrupt, "model.merges: expected an array, got 3"},
      {"/model/merges/0", "ab", kCorrupt, "model.merges: expected pairs of pieces, got \"ab\""},
      {"/model/merges/0", {"a", "b", "c"}, kCorrupt, "expected pairs of pieces, got an array"},
      {"/model/merges/0", {"a", 1}, kCorrupt, "expected pairs of pieces, got an array"},
      {"/model/merges/0", "x y", kCorrupt,
       "merge 0: expected two tokens that make a third, got \"x\" and \"y\""},
      {"/model/ignore_merges", 1, kCorrupt, "model.ignore_merges: expected true or false, got 1"},
      {"/model/vocab/a", -1, kCorrupt, "the id of \"a\": expected 0 to 1553, got -1"},
      {"/model/vocab/a", 1.5, kCorrupt, "the id of \"a\": expected an integer, got 1.5"},
      {"/model/vocab/a", 1u << 31, kCorrupt, "the id of \"a\": expected 0 to 1553, got 2147483648"},
      {"/model/vocab/a", 98, kCorrupt, "\"a\" and \"b\" have the same id 98"},
      {"/added_tokens/1/id", 97, kCorrupt,
       "added_tokens[1]: expected an id of its own for \"<tool>\", got 97, which is \"a\""},
      {"/model/unk_token", "none", kCorrupt,
       "model.unk_token: expected a token of the vocabulary, got \"none\""},
      {"/added_tokens/0/id", nullptr, kCorrupt, "added_tokens[0].id is missing"},
      {"/added_tokens/0/content", nullptr, kCorrupt, "added_tokens[0].content is missing"},
      {"/added_tokens/0", 7, kCorrupt, "added_tokens[0].content is missing"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "(", kCorrupt, "regular expression"},
      {"/pre_tokenizer/pretokenizers/0/pattern", nullptr, kCorrupt, "pre_tokenizer.pattern is"},
      {"/pre_tokenizer/pretokenizers/0", 1, kCorrupt, "pre_tokenizer.type is missing"},
  };
  for (const BadValue& bad : values) {
    json tokenizer = ByteLevelJson();
    tokenizer[json::json_pointer(bad.pointer)] = bad.value;
    const Error error = LoadError(tokenizer);
    EXPECT_EQ(error.code, bad.code) << bad.pointer << ": " << error.message;
    EXPECT_NE(error.message.find(bad.message), std::string::npos) << error.message;
  }
}

TEST(TokenizerFromHf, RefusesBadTemplates) {
  const std::pair<const char*, json> values[] = {
      {"/post_processor/special_tokens", nullptr},
      {"/post_processor/special_tokens/<s>/ids/0", -1},
      {"/post_processor/special_tokens/<s>/ids/0", 267},
      {"/post_processor/special_tokens/<s>/ids/0", uint64_t{1} << 40},
      {"/post_processor/single", "A"},
      {"/post_processor/single/0", 1},
  };
  for (const auto& [pointer, value] : values) {
    json tokenizer = SpaceMarkerJson();
    tokenizer[json::json_pointer(pointer)] = value;
    EXPECT_EQ(LoadError(tokenizer).code, ErrorCode::kCorrupt) << pointer << value;
  }
}

TEST(TokenizerFromHf, RefusesBadConfigs) {
  EXPECT_EQ(LoadError(ByteLevelJson(), json::array()).message,
            "tokenizer_config.json: expected an object, got an array");
  EXPECT_EQ(LoadError(ByteLevelJson(), {{"bos_token", 1}}).message, "bos_token.content is missing");
  EXPECT_EQ(LoadError(ByteLevelJson(), {{"add_bos_token", "yes"}}).message,
            "add_bos_token: expected true or false, got \"yes\"");
  EXPECT_EQ(LoadError("text").message, "tokenizer.json: expected an object, got \"text\"");
}

TEST(TokenizerFromHf, ReadsFilesAndNamesThem) {
  const testing::TempFolder folder;
  testing::WriteFile(folder / "tokenizer.json", SpaceMarkerJson().dump());
  testing::WriteFile(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  const auto tokenizer =
      TokenizerFromHf(folder / "tokenizer.json", folder / "tokenizer_config.json");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->eos_ids(), Ids{2});
  EXPECT_EQ(TokenizerFromHf(folder / "none.json", std::nullopt).error().code, ErrorCode::kNotFound);
  testing::WriteFile(folder / "tokenizer.json", "{}");
  EXPECT_EQ(TokenizerFromHf(folder / "tokenizer.json", std::nullopt).error().message,
            (folder / "tokenizer.json") + ": model is missing");
}

}  // namespace
}  // namespace kvick
