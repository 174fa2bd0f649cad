#ifndef KVICK_FORMATS_VOCABULARY_H_
#define KVICK_FORMATS_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/token_index.h"
#include "formats/tokenizer_data.h"
#include "kvick/status.h"

namespace kvick {

// 0x0A for "<0x0A>"; nullopt for anything that is not exactly two hexadecimal digits so wrapped.
std::optional<uint8_t> ParseBytePiece(std::string_view piece);

// The tokens, and which bytes each stands for. Move-only: views of its tokens survive a move.
class Vocabulary {
 public:
  // Errors    corrupt: no tokens, more than 2^31 - 1, another number of types than of pieces, or a
  //           byte token that is not spelled like one
  static Result<Vocabulary> Create(std::vector<std::string> pieces, std::vector<TokenType> types,
                                   PieceSpelling spelling);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  bool Contains(int32_t id) const { return id >= 0 && id < size(); }

  // The pieces as the file spells them.
  const std::vector<std::string>& pieces() const { return pieces_; }

  // For ids that it contains: the bytes that the token stands for in a text, and its type.
  const std::string& bytes(int32_t id) const { return bytes_[id]; }
  TokenType type(int32_t id) const { return types_[id]; }

  // The normal token that stands for exactly these bytes, the first if there are several, or
  // kNoToken.
  int32_t Find(std::string_view bytes) const;

  // The token of kind kByte for this byte, or kNoToken.
  int32_t ByteToken(char byte) const { return byte_tokens_[static_cast<uint8_t>(byte)]; }

 private:
  explicit Vocabulary(size_t num_tokens) : by_bytes_(num_tokens) { byte_tokens_.fill(kNoToken); }

  std::vector<std::string> pieces_;
  std::vector<std::string> bytes_;
  std::vector<TokenType> types_;
  TokenIndex by_bytes_;
  size_t longest_bytes_ = 0;
  std::array<int32_t, 256> byte_tokens_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_VOCABULARY_H_
