#include "formats/segment_encoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

// One symbol for each character; for each byte that belongs to none, one too.
std::vector<BpeSymbol> SymbolsOfCharacters(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<BpeSymbol> symbols;
  symbols.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Unit unit = NextUtf8(text.substr(pos));
    const size_t num_bytes = unit.kind == Utf8Kind::kCharacter ? unit.num_bytes : 1;
    symbols.push_back({pos, pos + num_bytes, vocabulary.Find(text.substr(pos, num_bytes))});
    pos += num_bytes;
  }
  return symbols;
}

std::vector<BpeSymbol> SymbolsOfBytes(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<BpeSymbol> symbols(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    symbols[i] = {i, i + 1, vocabulary.Find(text.substr(i, 1))};
  }
  return symbols;
}

void AppendTokens(const Vocabulary& vocabulary, std::string_view text,
                  const std::vector<BpeSymbol>& symbols, const Fallback& fallback,
                  std::vector<int32_t>& ids) {
  bool after_unknown = false;
  for (const BpeSymbol& symbol : symbols) {
    const bool was_after_unknown = std::exchange(after_unknown, false);
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
      continue;
    }
    const std::string_view bytes = text.substr(symbol.begin, symbol.end - symbol.begin);
    const auto has_token = [&](char byte) { return vocabulary.ByteToken(byte) != kNoToken; };
    if (std::ranges::all_of(bytes, has_token)) {
      for (char byte : bytes) ids.push_back(vocabulary.ByteToken(byte));
    } else if (fallback.unknown_id) {
      if (!(fallback.fuse_unknown && was_after_unknown)) ids.push_back(*fallback.unknown_id);
      after_unknown = true;
    }
  }
}

}  // namespace

Result<ScoreEncoder> ScoreEncoder::Create(const Vocabulary& vocabulary, std::vector<float> scores,
                                          Fallback fallback) {
  if (scores.size() != static_cast<size_t>(vocabulary.size())) {
    return Fail(ErrorCode::kCorrupt, "the tokenizer has {} scores for {} tokens", scores.size(),
                vocabulary.size());
  }
  const auto nan = std::ranges::find_if(scores, [](float score) { return std::isnan(score); });
  if (nan != scores.end()) {
    return Fail(ErrorCode::kCorrupt, "the score of token {} is not a number", nan - scores.begin());
  }
  ScoreEncoder encoder;
  encoder.scores_ = std::move(scores);
  encoder.fallback_ = fallback;
  return encoder;
}

void ScoreEncoder::Encode(const Vocabulary& vocabulary, std::string_view text,
                          std::vector<int32_t>& ids) const {
  std::vector<BpeSymbol> symbols = SymbolsOfCharacters(vocabulary, text);
  MergeSymbols(
      symbols, [&](const BpeSymbol& left, const BpeSymbol& right) -> std::optional<BpeMerge> {
        const int32_t id = vocabulary.Find(text.substr(left.begin, right.end - left.begin));
        if (id == kNoToken) return std::nullopt;
        return BpeMerge{-double{scores_[id]}, id};
      });
  AppendTokens(vocabulary, text, symbols, fallback_, ids);
}

Result<RankEncoder> RankEncoder::Create(const Vocabulary& vocabulary, const TokenizerData& data,
                                        Fallback fallback) {
  const std::vector<std::string>& pieces = vocabulary.pieces();
  TokenIndex by_piece(pieces.size());
  for (int32_t id = 0; id < vocabulary.size(); ++id) by_piece.Insert(pieces, id);

  RankEncoder encoder;
  encoder.spelling_ = data.spelling;
  encoder.whole_words_first_ = data.whole_words_first;
  encoder.fallback_ = fallback;
  encoder.merges_.reserve(data.merges.size());
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const auto& [left_piece, right_piece] = data.merges[rank];
    const int32_t left = by_piece.Find(pieces, left_piece);
    const int32_t right = by_piece.Find(pieces, right_piece);
    const int32_t whole = by_piece.Find(pieces, left_piece + right_piece);
    if (left == kNoToken || right == kNoToken || whole == kNoToken) {
      return Fail(ErrorCode::kCorrupt,
                  "merge {} joins {} and {}, but these and the result are not all tokens", rank,
                  Quoted(left_piece), Quoted(right_piece));
    }
    encoder.merges_.emplace(PairKey(left, right), BpeMerge{static_cast<double>(rank), whole});
  }
  return encoder;
}

void RankEncoder::Encode(const Vocabulary& vocabulary, std::string_view word,
                         std::vector<int32_t>& ids) const {
  if (whole_words_first_) {
    if (const int32_t id = vocabulary.Find(word); id != kNoToken) return ids.push_back(id);
  }
  std::vector<BpeSymbol> symbols = spelling_ == PieceSpelling::kByteLevel
                                       ? SymbolsOfBytes(vocabulary, word)
                                       : SymbolsOfCharacters(vocabulary, word);
  MergeSymbols(symbols,
               [&](const BpeSymbol& left, const BpeSymbol& right) -> std::optional<BpeMerge> {
                 if (left.id == kNoToken || right.id == kNoToken) return std::nullopt;
                 const auto merge = merges_.find(PairKey(left.id, right.id));
                 if (merge == merges_.end()) return std::nullopt;
                 return merge->second;
               });
  AppendTokens(vocabulary, word, symbols, fallback_, ids);
}

}  // namespace kvick
