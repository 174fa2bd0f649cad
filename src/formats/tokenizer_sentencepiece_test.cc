#include "formats/tokenizer_sentencepiece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "formats/damage_testing.h"
#include "formats/files_testing.h"
#include "formats/open_tokenizer.h"
#include "formats/piece_spelling.h"
#include "formats/sentencepiece_testing.h"

namespace kvick {
namespace {

using nlohmann::json;
using testing::SentencePieceSpec;
using Ids = std::vector<int32_t>;
using PieceType = SentencePieceModel::PieceType;

constexpr EncodeOptions kPlain{.add_special = false};

std::string RecordedPath(const std::string& name) {
  return std::string(KVICK_RECORDED_TOKENIZERS) + "/sentencepiece/" + name;
}

Result<Tokenizer> FromSpec(const SentencePieceSpec& spec, json config = json::object()) {
  const std::string bytes = spec.Build();
  return SentencePieceModel::Parse(testing::AsBytes(bytes), "m").and_then([&](auto model) {
    return TokenizerFromSentencePieceModel(std::move(model), config);
  });
}

TEST(SentencePieceModel, EncodesAsTheLibraryDoes) {
  for (const std::string name : {"bpe", "unigram"}) {
    testing::TempFolder folder;
    testing::WriteFile(folder / "tokenizer.model",
                       testing::ReadFile(RecordedPath(name + ".model")));
    const auto tokenizer = OpenTokenizer(folder.path());
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    EXPECT_EQ(tokenizer->bos_id(), 1);
    EXPECT_EQ(tokenizer->Encode(""), Ids{1});
    const json cases = json::parse(testing::ReadFile(RecordedPath(name + ".json")));
    EXPECT_GT(cases.size(), 150u);
    for (const json& test : cases) {
      const std::string text = test["text"];
      const auto ids = tokenizer->Encode(text, kPlain);
      EXPECT_EQ(ids, test["ids"].get<Ids>()) << name << ": " << test["text"].dump();
      const bool spells_markers = text.find(kSpaceMarker) != std::string::npos;
      if (!spells_markers) {
        EXPECT_EQ(tokenizer->Decode(*ids), text);
      }
    }
  }
}

TEST(SentencePieceModel, MergesAreOrderedByScoreThenByTheLengthOfTheLeftPiece) {
  const std::vector<SentencePieceModel::Piece> pieces = {
      {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -2}, {"bc", -3}, {"abc", -1}, {"\xC3\xA9", -4}};
  std::vector<std::string> merges;
  for (const MergeRule& merge : SentencePieceMerges(pieces)) {
    merges.push_back(merge.left + " " + merge.right);
  }
  EXPECT_EQ(merges, (std::vector<std::string>{"ab c", "a bc", "a b", "b c"}));
}

TEST(SentencePieceModel, TheConfigDecidesAboutSpacesAndBos) {
  const SentencePieceSpec spec = testing::SmallSentencePieceSpec();
  const auto plain = FromSpec(spec);
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->Encode("ab <s>ab"), (Ids{1, 8, 3, 1, 8}));
  const auto changed = FromSpec(spec, {{"tokenizer_class", "LlamaTokenizerFast"},
                                       {"legacy", false},
                                       {"add_bos_token", false},
                                       {"add_eos_token", true}});
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  EXPECT_EQ(changed->Encode("ab <s>ab"), (Ids{8, 3, 1, 7, 2}));
  const auto without_space = FromSpec(spec, {{"add_prefix_space", false}});
  ASSERT_TRUE(without_space.has_value()) << without_space.error().message;
  EXPECT_EQ(without_space->Encode("ab ab"), (Ids{1, 7, 8}));
}

TEST(SentencePieceModel, AddedTokensComeFromTheOlderFilesToo) {
  testing::TempFolder folder;
  testing::WriteFile(folder / "tokenizer.model", testing::SmallSentencePieceSpec().Build());
  testing::WriteFile(folder / "added_tokens.json", R"({"<pad>": 9, "<tool>": 10})");
  testing::WriteFile(folder / "special_tokens_map.json", R"({"pad_token": "<pad>"})");
  const auto tokenizer = OpenTokenizer(folder.path());
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->vocab_size(), 11);
  const auto ids = tokenizer->Encode("a<pad>b <tool>", kPlain);
  EXPECT_EQ(std::ranges::count(*ids, 9), 1);
  EXPECT_EQ(std::ranges::count(*ids, 10), 1);
  EXPECT_EQ(tokenizer->Decode(*ids), "a b <tool>");
}

TEST(SentencePieceModel, GemmaHasNoSpaceBeforeATextAndATabForAByte) {
  SentencePieceSpec spec = testing::SmallSentencePieceSpec();
  spec.pieces[0].text = "<pad>", spec.pieces[1].text = "<eos>", spec.pieces[2].text = "<bos>";
  spec.pieces[0].type = 3;
  spec.pieces.push_back({"<unk>", 0, 2});
  spec.pieces.push_back({"<0x09>", 0, 6});
  spec.unknown_id = 9;
  const auto tokenizer = FromSpec(spec, {{"tokenizer_class", "GemmaTokenizer"}});
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->Encode("ab\t ab"), (Ids{2, 7, 10, 8}));
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("ab\t ab")), "ab\t ab");
}

using SpecDamage = testing::Damage<std::function<void(SentencePieceSpec&)>>;
class SentencePieceModelDamage : public ::testing::TestWithParam<SpecDamage> {};

TEST_P(SentencePieceModelDamage, IsRefused) {
  SentencePieceSpec spec = testing::SmallSentencePieceSpec();
  GetParam().change(spec);
  testing::ExpectRefused(testing::ErrorOf(FromSpec(spec)), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    SentencePieceModel, SentencePieceModelDamage,
    ::testing::Values(
        SpecDamage{"Words", [](auto& spec) { spec.model_type = 3; },
                   "trainer_spec.model_type: expected 1 (Unigram) or 2 (BPE), got 3",
                   ErrorCode::kUnsupported},
        SpecDamage{"TwoPieces", [](auto& spec) { spec.pieces.resize(2); },
                   "expected at least 3 pieces, got 2"},
        SpecDamage{"NoPieces", [](auto& spec) { spec.pieces.clear(); }, "trainer_spec.unk_id"},
        SpecDamage{"AnEmptyPiece", [](auto& spec) { spec.pieces[4].text = ""; },
                   "m: pieces[4]: expected UTF-8 text, got \"\""},
        SpecDamage{"APieceThatIsNoText", [](auto& spec) { spec.pieces[4].text = "\xFF"; },
                   "expected UTF-8 text, got \"\\xff\""},
        SpecDamage{"ALongPiece", [](auto& spec) { spec.pieces[4].text = std::string(1025, 'a'); },
                   "expected at most 1024 bytes, got 1025", ErrorCode::kUnsupported},
        SpecDamage{"APieceTwice", [](auto& spec) { spec.pieces[5].text = "a"; },
                   "expected one piece \"a\", got two"},
        SpecDamage{
            "NaN",
            [](auto& spec) { spec.pieces[4].score = std::numeric_limits<float>::quiet_NaN(); },
            "expected a finite score, got nan"},
        SpecDamage{"UnknownType", [](auto& spec) { spec.pieces[4].type = 7; },
                   "pieces[4]: type: expected 1 to 6, got 7"},
        SpecDamage{"UnknownIdOutside", [](auto& spec) { spec.unknown_id = 9; },
                   "trainer_spec.unk_id: expected 0 to 8, got 9"},
        SpecDamage{"Normalizer", [](auto& spec) { spec.precompiled_charsmap = "abc"; },
                   "normalizer_spec.precompiled_charsmap: expected none", ErrorCode::kUnsupported},
        SpecDamage{"CutField",
                   [](auto& spec) {
                     spec.rest = std::string(
                         "\x0A\x05"
                         "a",
                         3);
                   },
                   "m: a field at offset"},
        SpecDamage{"Group", [](auto& spec) { spec.rest = "\x0B"; },
                   "expected wire type 0, 1, 2 or 5, got 3"},
        SpecDamage{"LongNumber", [](auto& spec) { spec.rest = std::string(11, '\xFF'); },
                   "expected at most 64 bits"},
        SpecDamage{"PieceAsNumber", [](auto& spec) { spec.rest = "\x08\x01"; },
                   "expected bytes, got wire type 0"}),
    testing::DamageName());

TEST(SentencePieceModel, ATokenizerClassThatIsNotKnownIsNamed) {
  const auto tokenizer =
      FromSpec(testing::SmallSentencePieceSpec(), {{"tokenizer_class", "T5Tokenizer"}});
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(tokenizer.error().message.find("\"T5Tokenizer\""), std::string::npos);
}

}  // namespace
}  // namespace kvick
