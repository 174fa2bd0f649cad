#include "formats/vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/piece_spelling.h"
#include "formats/tokenizer_testing.h"

namespace kvick {
namespace {

using enum TokenType;
using testing::SpellByteLevel;

TEST(PieceSpelling, BytePiecesAreTwoHexadecimalDigits) {
  EXPECT_EQ(ParseBytePiece("<0x00>"), 0);
  EXPECT_EQ(ParseBytePiece("<0xfF>"), 255);
  for (const char* piece :
       {"<0x-1>", "<0xZZ>", "<0x+1>", "<0x1>", "<0x100>", "<0x 1>", "0x0A", ""}) {
    EXPECT_EQ(ParseBytePiece(piece), std::nullopt) << piece;
  }
}

TEST(PieceSpelling, ByteLevelSpellsEachByteByOneCharacter) {
  EXPECT_EQ(SpelledBytes("\xC4\xA0the"), " the");  // U+0120 is the space
  EXPECT_EQ(SpelledBytes("\xC4\x8A"), "\n");       // U+010A
  EXPECT_EQ(SpelledBytes("\xC5\x83"), "\xAD");     // U+0143, the last one
  EXPECT_EQ(SpelledBytes("\xC3\xBF"), "\xFF");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(SpelledBytes(SpellByteLevel(all)), all);
}

TEST(PieceSpelling, ByteLevelHasNoOtherCharacters) {
  for (const char* piece :
       {" ", "a b", "\n", "\xC5\x84", "\xC3", "\xC3z", "\xE2\x82\xAC", "\xFF"}) {
    EXPECT_EQ(SpelledBytes(piece), std::nullopt) << piece;
  }
}

TokenizerData Data(std::vector<std::string> pieces, std::vector<TokenType> types) {
  TokenizerData data;
  for (const TokenType type : types) data.in_model.push_back(type == kNormal);
  data.in_model.resize(pieces.size());
  data.pieces = std::move(pieces);
  data.types = std::move(types);
  return data;
}

TEST(Vocabulary, FindsTokensOfTheModelByTheirPiece) {
  TokenizerData data = Data({"<s>", "xy", "\xC3\xA9", "<0x41>", "xy", "", "A"},
                            {kControl, kNormal, kNormal, kByte, kNormal, kNormal, kUserDefined});
  const auto vocabulary = *Vocabulary::Create(data);
  EXPECT_EQ(vocabulary.Find("xy"), 1);  // the first of two
  EXPECT_EQ(vocabulary.FindCharacter("\xC3\xA9"), 2);
  EXPECT_EQ(vocabulary.Find("<s>"), kNoToken);
  EXPECT_EQ(vocabulary.FindCharacter("A"), kNoToken);
  EXPECT_EQ(vocabulary.Find(""), kNoToken);
  EXPECT_EQ(vocabulary.ByteToken('A'), 3);
  EXPECT_EQ(vocabulary.ByteToken('\xFF'), kNoToken);
}

TEST(Vocabulary, SurvivesAMove) {
  TokenizerData data = Data({"short", std::string(100, 'l')}, {kNormal, kNormal});
  auto vocabulary = *Vocabulary::Create(data);
  const Vocabulary moved = std::move(vocabulary);
  EXPECT_EQ(moved.Find("short"), 0);
  EXPECT_EQ(moved.Find(std::string(100, 'l')), 1);
}

std::string CreateError(std::vector<std::string> pieces, std::vector<TokenType> types) {
  TokenizerData data = Data(std::move(pieces), std::move(types));
  const auto vocabulary = Vocabulary::Create(data);
  return vocabulary ? "no error" : vocabulary.error().message;
}

TEST(Vocabulary, RefusesContradictions) {
  EXPECT_EQ(CreateError({}, {}), "tokenizer: expected 1 to 2147483647 tokens, got 0");
  EXPECT_EQ(CreateError({"a", "b"}, {kNormal}),
            "tokenizer: expected 2 token types, one for each token, got 1");
  EXPECT_EQ(CreateError({"a", "<0x-1>"}, {kNormal, kByte}),
            "token 1 of type byte: expected <0x00> to <0xFF>, got \"<0x-1>\"");
  EXPECT_EQ(CreateError({"<0xZZ>"}, {kByte}),
            "token 0 of type byte: expected <0x00> to <0xFF>, got \"<0xZZ>\"");
}

}  // namespace
}  // namespace kvick
