#include "formats/bpe_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

// The token of a character; a byte that belongs to no character is none.
int32_t FindCharacter(const Vocabulary& vocabulary, std::string_view character) {
  if (character.size() == 1 && static_cast<uint8_t>(character[0]) >= 0x80) return kNoToken;
  return vocabulary.FindCharacter(character);
}

}  // namespace

Result<ScoreEncoder> ScoreEncoder::Create(const Vocabulary& vocabulary, TokenizerData& data) {
  if (data.scores.size() != static_cast<size_t>(vocabulary.size())) {
    return Fail(ErrorCode::kCorrupt, "tokenizer: expected {} scores, one for each token, got {}",
                vocabulary.size(), data.scores.size());
  }
  const auto nan =
      std::ranges::find_if(data.scores, [](double score) { return std::isnan(score); });
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
                          EncoderScratch& scratch, std::vector<int32_t>& ids) const {
  std::vector<BpeSymbol>& symbols = scratch.bpe.symbols;
  symbols.clear();
  for (uint32_t pos = 0; pos < piece.size();) {
    const auto num_bytes = static_cast<uint32_t>(CharacterBytes(piece.substr(pos)));
    symbols.push_back(
        {pos, pos + num_bytes, FindCharacter(vocabulary, piece.substr(pos, num_bytes))});
    pos += num_bytes;
  }
  MergeSymbols(
      scratch.bpe, [&](const BpeSymbol& left, const BpeSymbol& right) -> std::optional<BpeMerge> {
        const int32_t id = vocabulary.Find(piece.substr(left.begin, right.end - left.begin));
        if (id == kNoToken) return std::nullopt;
        return BpeMerge{-scores_[id], id};
      });
  for (const BpeSymbol& symbol : symbols) {
    const std::string_view bytes = piece.substr(symbol.begin, symbol.end - symbol.begin);
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
    } else if (!vocabulary.AppendByteTokens(bytes, ids) && unknown_id_) {
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

void RankEncoder::FindInitialTokens(const Vocabulary& vocabulary, std::string_view piece,
                                    std::vector<int32_t>& tokens) const {
  tokens.clear();
  // An unknown token waits for its neighbours. Byte tokens overtake it, as in Hugging Face's.
  bool has_unknown = false;
  const auto flush_unknown = [&] {
    if (std::exchange(has_unknown, false)) tokens.push_back(*unknown_id_);
  };
  for (size_t pos = 0; pos < piece.size();) {
    const std::string_view character = piece.substr(pos, CharacterBytes(piece.substr(pos)));
    pos += character.size();
    if (const int32_t id = FindCharacter(vocabulary, character); id != kNoToken) {
      flush_unknown();
      tokens.push_back(id);
    } else if (!vocabulary.AppendByteTokens(character, tokens) && unknown_id_) {
      if (!fuse_unknown_) flush_unknown();
      has_unknown = true;
    }
  }
  flush_unknown();
}

void RankEncoder::Encode(const Vocabulary& vocabulary, std::string_view piece,
                         EncoderScratch& scratch, std::vector<int32_t>& ids) const {
  if (whole_words_first_) {
    const int32_t id = vocabulary.Find(piece);
    const bool steers = id != kNoToken && vocabulary.type(id) == TokenType::kControl;
    if (id != kNoToken && !steers) return ids.push_back(id);
  }
  const std::vector<int32_t>& tokens = scratch.bpe.tokens;
  FindInitialTokens(vocabulary, piece, scratch.bpe.tokens);
  if (tokens.size() <= 1) {
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    return;
  }
  std::vector<BpeSymbol>& symbols = scratch.bpe.symbols;
  symbols.resize(tokens.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) symbols[i] = {i, i + 1, tokens[i]};
  MergeSymbols(scratch.bpe, [&](const BpeSymbol& left, const BpeSymbol& right) {
    return merges_.Find(left.id, right.id);
  });
  for (const BpeSymbol& symbol : symbols) ids.push_back(symbol.id);
}

}  // namespace kvick
