#include "formats/vocabulary.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/piece_spelling.h"
#include "formats/special_tokens.h"
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
  EXPECT_EQ(BytesOfByteLevel("\xC4\xA0the"), " the");  // U+0120 is the space
  EXPECT_EQ(BytesOfByteLevel("\xC4\x8A"), "\n");       // U+010A
  EXPECT_EQ(BytesOfByteLevel("\xC5\x83"), "\xAD");     // U+0143, the last one
  EXPECT_EQ(BytesOfByteLevel("\xC3\xBF"), "\xFF");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(BytesOfByteLevel(SpellByteLevel(all)), all);
}

TEST(PieceSpelling, ByteLevelHasNoOtherCharacters) {
  for (const char* piece :
       {" ", "a b", "\n", "\xC5\x84", "\xC3", "\xC3z", "\xE2\x82\xAC", "\xFF"}) {
    EXPECT_EQ(BytesOfByteLevel(piece), std::nullopt) << piece;
  }
}

TEST(PieceSpelling, SpaceMarkersAreSpaces) {
  EXPECT_EQ(SpacesOfMarkers("\xE2\x96\x81to\xE2\x96\x81\xE2\x96\x81"), " to  ");
  EXPECT_EQ(SpacesOfMarkers("to be"), "to be");
}

TEST(Vocabulary, FindsNormalTokensByTheirBytes) {
  const auto vocabulary = *Vocabulary::Create({"<s>", "\xE2\x96\x81x", "x", "<0x41>", "x", ""},
                                              {kControl, kNormal, kNormal, kByte, kNormal, kNormal},
                                              PieceSpelling::kSpaceMarkers);
  EXPECT_EQ(vocabulary.Find(" x"), 1);
  EXPECT_EQ(vocabulary.Find("x"), 2);  // the first of two
  EXPECT_EQ(vocabulary.Find("<s>"), kNoToken);
  EXPECT_EQ(vocabulary.Find("A"), kNoToken);
  EXPECT_EQ(vocabulary.Find(""), kNoToken);
  EXPECT_EQ(vocabulary.ByteToken('A'), 3);
  EXPECT_EQ(vocabulary.ByteToken('\xFF'), kNoToken);
  EXPECT_EQ(vocabulary.bytes(3), "A");
}

TEST(Vocabulary, SurvivesAMove) {
  auto vocabulary = *Vocabulary::Create({"short", std::string(100, 'l')}, {kNormal, kNormal},
                                        PieceSpelling::kSpaceMarkers);
  const Vocabulary moved = std::move(vocabulary);
  EXPECT_EQ(moved.Find("short"), 0);
  EXPECT_EQ(moved.Find(std::string(100, 'l')), 1);
}

std::string CreateError(std::vector<std::string> pieces, std::vector<TokenType> types) {
  const auto vocabulary =
      Vocabulary::Create(std::move(pieces), std::move(types), PieceSpelling::kSpaceMarkers);
  return vocabulary ? "no error" : vocabulary.error().message;
}

TEST(Vocabulary, RefusesContradictions) {
  EXPECT_EQ(CreateError({}, {}), "the tokenizer has 0 tokens, 1 to 2147483647 is possible");
  EXPECT_EQ(CreateError({"a", "b"}, {kNormal}), "the tokenizer has 1 token types for 2 tokens");
  EXPECT_EQ(CreateError({"a", "<0x-1>"}, {kNormal, kByte}),
            "token 1 is of type byte and spelled \"<0x-1>\", <0x00> to <0xFF> is possible");
  EXPECT_EQ(CreateError({"<0xZZ>"}, {kByte}),
            "token 0 is of type byte and spelled \"<0xZZ>\", <0x00> to <0xFF> is possible");
}

TEST(SpecialTokens, TheLeftmostAndThereTheLongestMatches) {
  const auto vocabulary =
      *Vocabulary::Create({"<a", "<a>", "<a><", "a>", "<user>", "<unk>"},
                          {kControl, kControl, kControl, kControl, kUserDefined, kUnknown},
                          PieceSpelling::kSpaceMarkers);
  const auto matcher = *SpecialTokenMatcher::Create(vocabulary);
  const auto find = [&](std::string_view text, size_t from, SpecialTokens which) {
    const auto match = matcher.FindNext(text, from, which);
    return match ? fmt::format("{} [{}, {})", match->id, match->begin, match->end) : "none";
  };
  EXPECT_EQ(find("x<a>", 0, SpecialTokens::kAll), "1 [1, 4)");
  EXPECT_EQ(find("x<a>", 2, SpecialTokens::kAll), "3 [2, 4)");
  EXPECT_EQ(find("<a><user>", 0, SpecialTokens::kAll), "2 [0, 4)");
  EXPECT_EQ(find("<a><user>", 0, SpecialTokens::kUserDefinedOnly), "4 [3, 9)");
  EXPECT_EQ(find("<unk>", 0, SpecialTokens::kAll), "5 [0, 5)");
  EXPECT_EQ(find("<unk>", 0, SpecialTokens::kUserDefinedOnly), "none");
  EXPECT_EQ(find("<", 0, SpecialTokens::kAll), "none");
  EXPECT_EQ(find("", 0, SpecialTokens::kAll), "none");
}

TEST(SpecialTokens, RefusesVeryLongOnes) {
  const auto vocabulary =
      *Vocabulary::Create({std::string(1025, 'a')}, {kControl}, PieceSpelling::kSpaceMarkers);
  EXPECT_EQ(SpecialTokenMatcher::Create(vocabulary).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace kvick
