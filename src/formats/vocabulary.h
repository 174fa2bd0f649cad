#ifndef KVICK_FORMATS_VOCABULARY_H_
#define KVICK_FORMATS_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/token_index.h"
#include "formats/tokenizer_data.h"
#include "kvick/status.h"

namespace kvick {

// The tokens of the model, and how to find those that text may become. Move-only: views of its
// pieces survive a move.
class Vocabulary {
 public:
  // Takes pieces, types and in_model of `data`.
  // Errors  corrupt: no tokens, more than 2^31 - 1, another number of types than of pieces, or a
  //         byte token that is not spelled like one
  static Result<Vocabulary> Create(TokenizerData& data);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  bool Contains(int32_t id) const { return id >= 0 && id < size(); }

  const std::vector<std::string>& pieces() const { return pieces_; }
  TokenType type(int32_t id) const { return types_[id]; }  // for ids that it contains

  // The token of the model with exactly this piece, the first if there are several, or kNoToken.
  int32_t Find(std::string_view piece) const;

  // The same for one character. Most of those of byte-level text are in a small table.
  int32_t FindCharacter(std::string_view character) const {
    if (character.size() == 1) return short_characters_[static_cast<uint8_t>(character[0])];
    if (character.size() == 2) return short_characters_[TwoByteIndex(character)];
    return Find(character);
  }

  // The token of kind kByte for this byte, or kNoToken.
  int32_t ByteToken(char byte) const { return byte_tokens_[static_cast<uint8_t>(byte)]; }

  // Appends the tokens of `bytes`. False, and nothing is appended, where one of them has none.
  bool AppendByteTokens(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  explicit Vocabulary(size_t num_tokens);

  static size_t TwoByteIndex(std::string_view bytes) {
    return (static_cast<size_t>(bytes[0]) & 0x1F) << 6 | (static_cast<size_t>(bytes[1]) & 0x3F);
  }
  Status AddByte(int32_t id);
  void AddPiece(int32_t id);

  std::vector<std::string> pieces_;
  std::vector<TokenType> types_;
  TokenIndex by_piece_;
  size_t longest_piece_ = 0;
  std::array<int32_t, 256> byte_tokens_;
  std::array<int32_t, 0x800> short_characters_;  // by number; those of one and two bytes
};

}  // namespace kvick

#endif  // KVICK_FORMATS_VOCABULARY_H_
