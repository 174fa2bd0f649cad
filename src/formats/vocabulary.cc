#include "formats/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/check.h"
#include "formats/piece_spelling.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

// The bytes of a token that is not of type kByte. What no text is made of is spelled literally.
std::string BytesOf(const std::string& piece, TokenType type, PieceSpelling spelling) {
  if (type != TokenType::kNormal) return piece;
  if (spelling == PieceSpelling::kSpaceMarkers) return SpacesOfMarkers(piece);
  return BytesOfByteLevel(piece).value_or(piece);
}

}  // namespace

std::optional<uint8_t> ParseBytePiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const char* end = piece.data() + 5;
  const auto [parsed, error] = std::from_chars(piece.data() + 3, end, byte, 16);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return byte;
}

Result<Vocabulary> Vocabulary::Create(std::vector<std::string> pieces, std::vector<TokenType> types,
                                      PieceSpelling spelling) {
  if (pieces.empty() || pieces.size() > std::numeric_limits<int32_t>::max()) {
    return Fail(ErrorCode::kCorrupt, "the tokenizer has {} tokens, 1 to 2147483647 is possible",
                pieces.size());
  }
  if (types.size() != pieces.size()) {
    return Fail(ErrorCode::kCorrupt, "the tokenizer has {} token types for {} tokens", types.size(),
                pieces.size());
  }
  Vocabulary vocabulary(pieces.size());
  vocabulary.bytes_.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (types[i] == TokenType::kByte) {
      const std::optional<uint8_t> byte = ParseBytePiece(pieces[i]);
      if (!byte) {
        return Fail(ErrorCode::kCorrupt,
                    "token {} is of type byte and spelled {}, <0x00> to <0xFF> is possible", i,
                    Quoted(pieces[i]));
      }
      vocabulary.bytes_.emplace_back(1, static_cast<char>(*byte));
      int32_t& entry = vocabulary.byte_tokens_[*byte];
      if (entry == kNoToken) entry = id;
      continue;
    }
    vocabulary.bytes_.push_back(BytesOf(pieces[i], types[i], spelling));
    const std::string& bytes = vocabulary.bytes_.back();
    if (types[i] != TokenType::kNormal || bytes.empty()) continue;
    vocabulary.by_bytes_.Insert(vocabulary.bytes_, id);
    vocabulary.longest_bytes_ = std::max(vocabulary.longest_bytes_, bytes.size());
  }
  vocabulary.pieces_ = std::move(pieces);
  vocabulary.types_ = std::move(types);
  return vocabulary;
}

int32_t Vocabulary::Find(std::string_view bytes) const {
  if (bytes.size() > longest_bytes_) return kNoToken;
  return by_bytes_.Find(bytes_, bytes);
}

}  // namespace kvick
