#include "formats/bpe_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/bpe_merge.h"
#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

// The bytes of the character that `text` begins with, or one byte that belongs to none.
size_t CharacterSize(std::string_view text) {
  const Utf8Unit unit = NextUtf8(text);
  return unit.kind == Utf8Kind::kCharacter ? unit.num_bytes : 1;
}

// The token of a character; a byte that belongs to no character is none.
int32_t FindCharacter(const Vocabulary& vocabulary, std::string_view character) {
  if (character.size() == 1 && static_cast<uint8_t>(character[0]) >= 0x80) return kNoToken;
  return vocabulary.FindCharacter(character);
}

// False, and nothing is appended, where a byte has no token.
bool AppendByteTokens(const Vocabulary& vocabulary, std::string_view bytes,
                      std::vector<int32_t>& ids) {
  const auto has_token = [&](char byte) { return vocabulary.ByteToken(byte) != kNoToken; };
  if (!std::ranges::all_of(bytes, has_token)) return false;
  for (char byte : bytes) ids.push_back(vocabulary.ByteToken(byte));
  return true;
}

}  // namespace

Result<ScoreEncoder> ScoreEncoder::Create(const Vocabulary& vocabulary, TokenizerData& data) {
  if (data.scores.size() != static_cast<size_t>(vocabulary.size())) {
    return Fail(ErrorCode::kCorrupt, "tokenizer: expected {} scores, one for each token, got {}",
                vocabulary.size(), data.scores.size());
  }
  const auto nan = std::ranges::find_if(data.scores, [](float score) { return std::isnan(score); });
  if (nan != data.scores.end()) {
    return Fail(ErrorCode::kCorrupt, "score of token {}: expected a number, got NaN",
                nan - data.scores.begin());
  }
  ScoreEncoder encoder;
  encoder.scores_ = std::move(data.scores);
  encoder.unknown_id_ = data.unknown_id;
  return encoder;
}

void ScoreEncoder::Encode(const Vocabulary& vocabulary, std::string_view piece,
                          std::vector<int32_t>& ids) const {
  std::vector<BpeSymbol> symbols;
  symbols.reserve(piece.size());
  for (size_t pos = 0; pos < piece.size();) {
    const size_t num_bytes = CharacterSize(piece.substr(pos));
    symbols.push_back(
        {pos, pos + num_bytes, FindCharacter(vocabulary, piece.substr(pos, num_bytes))});
    pos += num_bytes;
  }
  MergeSymbols(
      symbols, [&](const BpeSymbol& left, const BpeSymbol& right) -> std::optional<BpeMerge> {
        const int32_t id = vocabulary.Find(piece.substr(left.begin, right.end - left.begin));
        if (id == kNoToken) return std::nullopt;
        return BpeMerge{-double{scores_[id]}, id};
      });
  for (const BpeSymbol& symbol : symbols) {
    const std::string_view bytes = piece.substr(symbol.begin, symbol.end - symbol.begin);
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
    } else if (!AppendByteTokens(vocabulary, bytes, ids) && unknown_id_) {
      ids.push_back(*unknown_id_);
    }
  }
}

Result<RankEncoder> RankEncoder::Create(const Vocabulary& vocabulary, const TokenizerData& data) {
  const std::vector<std::string>& pieces = vocabulary.pieces();
  TokenIndex by_piece(pieces.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) by_piece.Insert(pieces, id);

  RankEncoder encoder;
  encoder.whole_words_first_ = data.whole_words_first;
  encoder.fuse_unknown_ = data.fuse_unknown;
  encoder.unknown_id_ = data.unknown_id;
  encoder.merges_ = MergeTable(data.merges.size());
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const auto& [left_piece, right_piece] = data.merges[rank];
    const int32_t left = by_piece.Find(pieces, left_piece);
    const int32_t right = by_piece.Find(pieces, right_piece);
    const int32_t whole = by_piece.Find(pieces, left_piece + right_piece);
    if (left == kNoToken || right == kNoToken || whole == kNoToken) {
      return Fail(ErrorCode::kCorrupt,
                  "merge {}: expected two tokens that make a third, got {} and {}", rank,
                  Quoted(left_piece), Quoted(right_piece));
    }
    encoder.merges_.Insert(left, right, {static_cast<double>(rank), whole}, data.duplicate_merges);
  }
  return encoder;
}

std::vector<int32_t> RankEncoder::InitialTokens(const Vocabulary& vocabulary,
                                                std::string_view piece) const {
  std::vector<int32_t> tokens;
  tokens.reserve(piece.size());
  // An unknown token waits for its neighbours. Byte tokens overtake it, as in Hugging Face's.
  bool has_unknown = false;
  const auto flush_unknown = [&] {
    if (std::exchange(has_unknown, false)) tokens.push_back(*unknown_id_);
  };
  for (size_t pos = 0; pos < piece.size();) {
    const std::string_view character = piece.substr(pos, CharacterSize(piece.substr(pos)));
    pos += character.size();
    if (const int32_t id = FindCharacter(vocabulary, character); id != kNoToken) {
      flush_unknown();
      tokens.push_back(id);
    } else if (!AppendByteTokens(vocabulary, character, tokens) && unknown_id_) {
      if (!fuse_unknown_) flush_unknown();
      has_unknown = true;
    }
  }
  flush_unknown();
  return tokens;
}

void RankEncoder::Encode(const Vocabulary& vocabulary, std::string_view piece,
                         std::vector<int32_t>& ids) const {
  if (whole_words_first_) {
    const int32_t id = vocabulary.Find(piece);
    const bool steers = id != kNoToken && vocabulary.type(id) == TokenType::kControl;
    if (id != kNoToken && !steers) return ids.push_back(id);
  }
  const std::vector<int32_t> tokens = InitialTokens(vocabulary, piece);
  if (tokens.size() <= 1) {
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    return;
  }
  std::vector<BpeSymbol> symbols(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) symbols[i] = {i, i + 1, tokens[i]};
  MergeSymbols(symbols, [&](const BpeSymbol& left, const BpeSymbol& right) {
    return merges_.Find(left.id, right.id);
  });
  for (const BpeSymbol& symbol : symbols) ids.push_back(symbol.id);
}

}  // namespace kvick
