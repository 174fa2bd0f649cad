#include "formats/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/tokenizer_testing.h"

namespace kvick {
namespace {

using testing::AddToken;
using testing::SmallByteLevel;
using testing::SmallSentencePiece;
using Ids = std::vector<int32_t>;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

Tokenizer MustCreate(TokenizerData data) {
  auto tokenizer = Tokenizer::Create(std::move(data));
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

std::string CreateError(TokenizerData data) {
  const auto tokenizer = Tokenizer::Create(std::move(data));
  return tokenizer ? "no error" : tokenizer.error().message;
}

TEST(SentencePiece, JoinsTheBestScoresFirst) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  // space 259, a 260, b 261, c 262, ab 263 (-3), bc 264 (-2), abc 265 (-5), space + a 266 (-4)
  EXPECT_EQ(*tokenizer.Encode("b", kPlain), (Ids{259, 261}));
  EXPECT_EQ(*tokenizer.Encode("a", kPlain), (Ids{266}));
  EXPECT_EQ(*tokenizer.Encode("ab", kPlain), (Ids{259, 263}));   // ab before space + a
  EXPECT_EQ(*tokenizer.Encode("abc", kPlain), (Ids{266, 264}));  // bc, then space + a
  EXPECT_EQ(*tokenizer.Encode("babc", kPlain), (Ids{259, 261, 265}));
}

TEST(SentencePiece, AddsASpaceBeforeEachStretchButNotToNothing) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  EXPECT_EQ(*tokenizer.Encode(""), Ids{1});
  EXPECT_EQ(*tokenizer.Encode(" ", kPlain), (Ids{259, 259}));
  EXPECT_EQ(*tokenizer.Encode("a</s>a"), (Ids{1, 266, 2, 266}));
}

TEST(SentencePiece, SpellsWhatItLacksByBytes) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  EXPECT_EQ(*tokenizer.Encode("\xC3\xA9\xFF", kPlain), (Ids{259, 3 + 0xC3, 3 + 0xA9, 3 + 0xFF}));
}

TEST(SentencePiece, SaysUnknownWhereABytePieceIsMissing) {
  TokenizerData data = SmallSentencePiece();
  data.types[3 + 0xA9] = TokenType::kUnused;
  EXPECT_EQ(*MustCreate(data).Encode("\xC3\xA9", kPlain), (Ids{259, 0}));
  data.unknown_id = std::nullopt;
  EXPECT_EQ(*MustCreate(data).Encode("\xC3\xA9", kPlain), Ids{259});
}

TEST(SentencePiece, ControlTokensAreNotReadFromTextUnlessAsked) {
  TokenizerData data = SmallSentencePiece();
  for (const char* piece : {"<", "s", ">", "s>"}) AddToken(data, piece, TokenType::kNormal);
  const Tokenizer tokenizer = MustCreate(data);
  EXPECT_EQ(*tokenizer.Encode("<s>", kPlain), (Ids{259, 267, 270}));
  EXPECT_EQ(*tokenizer.Encode("<s>", {.add_special = false, .parse_special = true}), Ids{1});
}

TEST(SentencePiece, DecodesBackWithoutTheSpaceThatItAdded) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  for (const std::string text : {"", " ", "a b", "  abc", "\xC3\xA9", "\xFF\xFE", "a\nb "}) {
    EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(text)), text);
  }
}

TEST(SentencePiece, ALineOfOneLetterIsNotQuadratic) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  std::string text;
  while (text.size() < 1 << 18) text += "abc";
  EXPECT_EQ(tokenizer.Encode(text, kPlain)->size(), text.size() / 3 + 1);
}

TEST(Detokenizer, StripsTheSpaceAtTheStartOfATextAlone) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  Detokenizer start(tokenizer, DecodeFrom::kTextStart);
  EXPECT_EQ(start.Append(1), "");
  EXPECT_EQ(start.Append(266), "a");
  EXPECT_EQ(start.Append(266), " a");
  Detokenizer rest(tokenizer, DecodeFrom::kTextRest);
  EXPECT_EQ(rest.Append(266), " a");
}

TEST(ByteLevel, JoinsTheFirstMergesFirst) {
  const Tokenizer tokenizer = MustCreate(SmallByteLevel());
  // bc 256, ab 257, abc 258, space + a 259, aa 260, aaaa 261
  EXPECT_EQ(*tokenizer.Encode("abc", kPlain), Ids{258});
  EXPECT_EQ(*tokenizer.Encode("ab", kPlain), Ids{257});
  EXPECT_EQ(*tokenizer.Encode("aaaaa", kPlain), (Ids{261, 'a'}));
  EXPECT_EQ(*tokenizer.Encode("x abc", kPlain), (Ids{'x', ' ', 258}));
  EXPECT_EQ(*tokenizer.Encode("b\xC3\xA9", kPlain), (Ids{'b', 0xC3, 0xA9}));
}

TEST(ByteLevel, MergesDoNotCrossWords) {
  TokenizerData data = SmallByteLevel();
  EXPECT_EQ(*MustCreate(data).Encode("a1bc", kPlain), (Ids{'a', '1', 256}));
  data.merges.insert(data.merges.begin(), MergeRule{"a", "1"});
  const int32_t a1 = AddToken(data, "a1", TokenType::kNormal);
  EXPECT_EQ(*MustCreate(data).Encode("a1", kPlain), (Ids{'a', '1'}));
  data.pretokenizer = {ByteLevelStep{}};
  EXPECT_EQ(*MustCreate(data).Encode("a1", kPlain), Ids{a1});
}

TEST(ByteLevel, WholeWordsNeedNoMergesWhereTheTokenizerSaysSo) {
  TokenizerData data = SmallByteLevel();
  const int32_t cab = AddToken(data, "cab", TokenType::kNormal);
  EXPECT_EQ(*MustCreate(data).Encode("cab", kPlain), (Ids{'c', 257}));
  data.whole_words_first = true;
  EXPECT_EQ(*MustCreate(data).Encode("cab", kPlain), Ids{cab});
}

TEST(ByteLevel, UserDefinedTokensAreAlwaysRead) {
  const Tokenizer tokenizer = MustCreate(SmallByteLevel());
  EXPECT_EQ(*tokenizer.Encode("a<tool>a", kPlain), (Ids{'a', 263, 'a'}));
  EXPECT_EQ(tokenizer.Encode("<|end|>")->size(), 1u);
  EXPECT_EQ(tokenizer.Encode("<|end|>", kPlain)->size(), 7u);
  EXPECT_EQ(tokenizer.Decode(Ids{'a', 263, 262, 'a'}), "a<tool>a");
}

TEST(ByteLevel, AnyBytesDecodeBack) {
  const Tokenizer tokenizer = MustCreate(SmallByteLevel());
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 40, '\0');
    constexpr std::string_view kBytes = "aabbc  1\n\t!\xC3\xA9\xE2\x82\xAC\xFF\x80<\0";
    for (char& byte : text) byte = kBytes[random() % kBytes.size()];
    EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(text, kPlain)), text);
  }
}

TEST(ByteLevel, ALineOfOneLetterIsNotQuadratic) {
  const Tokenizer tokenizer = MustCreate(SmallByteLevel());
  EXPECT_EQ(*tokenizer.Encode(std::string(1 << 18, 'a'), kPlain), Ids(1 << 16, 261));
}

TEST(RankedSpaceMarkers, EncodesAsLlama2InHuggingFace) {
  TokenizerData data = SmallSentencePiece();
  data.encoder = EncoderKind::kMergesByRank;
  data.scores.clear();
  const std::string marker(kSpaceMarker);
  data.merges = {{"b", "c"}, {marker, "a"}};
  EXPECT_EQ(*MustCreate(data).Encode("abc \xC3\xA9", kPlain),
            (Ids{266, 264, 259, 3 + 0xC3, 3 + 0xA9}));
}

TEST(RankedSpaceMarkers, CharactersThatAreNothingVanishBeforeMerging) {
  TokenizerData data = SmallSentencePiece();
  data.encoder = EncoderKind::kMergesByRank;
  data.unknown_id = std::nullopt;
  for (TokenType& type : data.types) {
    if (type == TokenType::kByte) type = TokenType::kUnused;
  }
  data.merges = {{"b", "c"}};
  EXPECT_EQ(*MustCreate(data).Encode("bxc", kPlain), (Ids{259, 264}));
}

TEST(RankedSpaceMarkers, OfDuplicateMergesOneCounts) {
  TokenizerData data = SmallSentencePiece();
  data.encoder = EncoderKind::kMergesByRank;
  data.merges = {{"a", "b"}, {"b", "c"}, {"a", "b"}};
  EXPECT_EQ(*MustCreate(data).Encode("abc", kPlain), (Ids{259, 260, 264}));
  data.duplicate_merges = DuplicateMerges::kFirstCounts;
  EXPECT_EQ(*MustCreate(data).Encode("abc", kPlain), (Ids{259, 263, 262}));
}

TEST(RankedSpaceMarkers, FusesUnknownNeighbours) {
  TokenizerData data = SmallSentencePiece();
  data.encoder = EncoderKind::kMergesByRank;
  data.scores.clear();
  for (TokenType& type : data.types) {
    if (type == TokenType::kByte) type = TokenType::kUnused;
  }
  EXPECT_EQ(*MustCreate(data).Encode("xyaz", kPlain), (Ids{259, 0, 0, 260, 0}));
  data.fuse_unknown = true;
  EXPECT_EQ(*MustCreate(data).Encode("xyaz", kPlain), (Ids{259, 0, 260, 0}));
}

TEST(Tokenizer, MetaspacePutsItsMarkerByItsScheme) {
  TokenizerData data = SmallSentencePiece();
  data.normalizer = {};
  const std::string marker(kSpaceMarker);
  const auto ids = [&](PrependScheme scheme, std::string_view text) {
    data.pretokenizer = {MetaspaceStep{marker, scheme, /*split=*/false}};
    return *MustCreate(data).Encode(text, {.add_special = false, .parse_special = true});
  };
  const std::string_view bb = "b</s>b";
  EXPECT_EQ(ids(PrependScheme::kNever, bb), (Ids{261, 2, 261}));
  EXPECT_EQ(ids(PrependScheme::kAlways, bb), (Ids{259, 261, 2, 259, 261}));
  EXPECT_EQ(ids(PrependScheme::kFirst, bb), (Ids{259, 261, 2, 261}));
  EXPECT_EQ(ids(PrependScheme::kFirst, "</s>b"), (Ids{2, 261}));
  EXPECT_EQ(ids(PrependScheme::kAlways, " b"), (Ids{259, 261}));
  EXPECT_EQ(ids(PrependScheme::kAlways, marker + "b"), (Ids{259, 261}));
  EXPECT_EQ(ids(PrependScheme::kFirst, " b"), (Ids{259, 261}));
}

// The first scheme is for the first piece alone, and only where it is the start of the text.
TEST(Tokenizer, MetaspaceFirstKnowsTheStartOfTheText) {
  TokenizerData data = SmallSentencePiece();
  data.normalizer = {};
  const MetaspaceStep metaspace{std::string(kSpaceMarker), PrependScheme::kFirst, /*split=*/false};
  data.pretokenizer = {SplitStep{*TextPattern::FromString("b")}, metaspace};
  EXPECT_EQ(*MustCreate(data).Encode("bc", kPlain), (Ids{259, 261, 262}));
  data.pretokenizer = {SplitStep{CharacterClass::kWhiteSpace, SplitBehavior::kRemoved}, metaspace};
  EXPECT_EQ(*MustCreate(data).Encode("b c", kPlain), (Ids{259, 261, 262}));
  EXPECT_EQ(*MustCreate(data).Encode(" b", kPlain), Ids{261});
  data.normalizer = {StripStep{true, true}};
  data.pretokenizer = {metaspace};
  EXPECT_EQ(*MustCreate(data).Encode("b ", kPlain), (Ids{259, 261}));
  EXPECT_EQ(*MustCreate(data).Encode(" b ", kPlain), Ids{261});
}

TEST(Tokenizer, PutsSpecialTokensAroundATextWhenAsked) {
  TokenizerData data = SmallSentencePiece();
  data.suffix_ids = {2};
  const Tokenizer tokenizer = MustCreate(data);
  EXPECT_EQ(*tokenizer.Encode("a"), (Ids{1, 266, 2}));
  EXPECT_EQ(*tokenizer.Encode("a", {.add_special = false}), (Ids{266}));
}

TEST(Tokenizer, KnowsAllTokensThatEndAGeneration) {
  TokenizerData data = SmallSentencePiece();
  AddToken(data, "<|im_end|>", TokenType::kNormal);  // a piece of text that looks like one
  const int32_t end_of_turn = AddToken(data, "<|eot_id|>", TokenType::kControl);
  data.eos_ids = {end_of_turn, 260};
  const Tokenizer tokenizer = MustCreate(data);
  EXPECT_EQ(tokenizer.eos_ids(), (Ids{2, 260, end_of_turn}));
}

TEST(Tokenizer, IdsThatAreNoTokensStandForNothing) {
  const Tokenizer tokenizer = MustCreate(SmallSentencePiece());
  EXPECT_EQ(tokenizer.Decode(Ids{-1, 100'000, 260}), "a");
  EXPECT_EQ(tokenizer.TokenBytes(-1), "");
  EXPECT_EQ(tokenizer.TokenBytes(1), "");
}

TEST(Tokenizer, RefusesContradictions) {
  TokenizerData data = SmallSentencePiece();
  data.scores.pop_back();
  EXPECT_EQ(CreateError(data), "tokenizer: expected 267 scores, one for each token, got 266");
  data = SmallSentencePiece();
  data.scores[260] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CreateError(data), "score of token 260: expected a number, got NaN");
  data = SmallSentencePiece();
  data.bos_id = 267;
  EXPECT_EQ(CreateError(data), "the BOS token: expected 0 to 266, got 267");
  data = SmallSentencePiece();
  data.prefix_ids = {-1};
  EXPECT_EQ(CreateError(data), "the first token: expected 0 to 266, got -1");
  data = SmallByteLevel();
  data.merges[1].right = "zz";
  EXPECT_EQ(CreateError(data),
            "merge 1: expected two tokens that make a third, got \"a\" and \"zz\"");
  data = SmallByteLevel();
}

// The definition, at quadratic cost: while any two neighbours make a piece, join those with the
// highest score, the leftmost of equals.
std::vector<std::string> JoinBySearch(std::vector<std::string> symbols,
                                      const std::map<std::string, float>& scores) {
  while (true) {
    std::optional<size_t> best;
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto piece = scores.find(symbols[i] + symbols[i + 1]);
      if (piece == scores.end() || (best && piece->second <= best_score)) continue;
      best = i;
      best_score = piece->second;
    }
    if (!best) return symbols;
    symbols[*best] += symbols[*best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(*best) + 1);
  }
}

// Half of the vocabularies have a space inside of pieces, so that words cannot be encoded alone.
TEST(SentencePiece, AgreesWithTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    TokenizerData data;
    std::map<std::string, float> scores = {{" ", -9}, {"a", -9}, {"b", -9}};
    const bool inner_spaces = round % 2 == 0;
    for (int i = 0; i < 12; ++i) {
      std::string piece = random() % 2 ? " " : "";
      for (size_t length = 1 + random() % 3; length > 0; --length) {
        piece += "ab "[random() % (inner_spaces ? 3 : 2)];
      }
      scores.emplace(piece, -static_cast<float>(random() % 5));
    }
    testing::UseSpaceMarkers(data);
    for (const auto& [piece, score] : scores) {
      std::string marked;
      for (const char c : piece) marked += c == ' ' ? std::string(kSpaceMarker) : std::string(1, c);
      AddToken(data, marked, TokenType::kNormal, score);
    }
    const Tokenizer tokenizer = MustCreate(data);
    std::vector<std::string> symbols(1 + random() % 30);
    std::string text;
    for (std::string& symbol : symbols) text += symbol = "ab "[random() % 3];
    std::vector<std::string> tokens;
    const Ids ids = *tokenizer.Encode(text);
    for (int32_t id : ids) tokens.emplace_back(tokenizer.TokenBytes(id));
    EXPECT_EQ(tokens, JoinBySearch(symbols, scores)) << "round " << round << ": " << text;
  }
}

}  // namespace
}  // namespace kvick
