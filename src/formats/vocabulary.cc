#include "formats/vocabulary.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick {

Vocabulary::Vocabulary(size_t num_tokens) : by_piece_(num_tokens) {
  byte_tokens_.fill(kNoToken);
  short_characters_.fill(kNoToken);
}

Result<Vocabulary> Vocabulary::Create(TokenizerData& data) {
  const size_t num_tokens = data.pieces.size();
  if (num_tokens == 0 || num_tokens > std::numeric_limits<int32_t>::max()) {
    return Fail(ErrorCode::kCorrupt, "tokenizer: expected 1 to 2147483647 tokens, got {}",
                num_tokens);
  }
  if (data.types.size() != num_tokens || data.in_model.size() != num_tokens) {
    return Fail(ErrorCode::kCorrupt,
                "tokenizer: expected {} token types, one for each token, got {}", num_tokens,
                data.types.size());
  }
  Vocabulary vocabulary(num_tokens);
  vocabulary.pieces_ = std::move(data.pieces);
  vocabulary.types_ = std::move(data.types);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types_[id] == TokenType::kByte) {
      KVICK_RETURN_IF_ERROR(vocabulary.AddByte(id));
    } else if (data.in_model[id]) {
      vocabulary.AddPiece(id);
    }
  }
  return vocabulary;
}

Status Vocabulary::AddByte(int32_t id) {
  const std::optional<uint8_t> byte = ParseBytePiece(pieces_[id]);
  if (!byte) {
    return Fail(ErrorCode::kCorrupt, "token {} of type byte: expected <0x00> to <0xFF>, got {}", id,
                Quoted(pieces_[id]));
  }
  int32_t& entry = byte_tokens_[*byte];
  if (entry == kNoToken) entry = id;
  return {};
}

void Vocabulary::AddPiece(int32_t id) {
  const std::string& piece = pieces_[id];
  if (piece.empty()) return;
  by_piece_.Insert(pieces_, id);
  longest_piece_ = std::max(longest_piece_, piece.size());
  const Utf8Unit first = NextUtf8(piece);
  if (first.num_bytes > 2 || first.num_bytes != piece.size()) return;
  if (first.kind != Utf8Kind::kCharacter) return;
  const size_t number = piece.size() == 1 ? static_cast<uint8_t>(piece[0]) : TwoByteIndex(piece);
  if (short_characters_[number] == kNoToken) short_characters_[number] = id;
}

bool Vocabulary::AppendByteTokens(std::string_view bytes, std::vector<int32_t>& ids) const {
  const auto has_token = [&](char byte) { return ByteToken(byte) != kNoToken; };
  if (!std::ranges::all_of(bytes, has_token)) return false;
  for (const char byte : bytes) ids.push_back(ByteToken(byte));
  return true;
}

int32_t Vocabulary::Find(std::string_view piece) const {
  if (piece.size() > longest_piece_) return kNoToken;
  return by_piece_.Find(pieces_, piece);
}

}  // namespace kvick
