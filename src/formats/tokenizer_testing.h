#ifndef KVICK_FORMATS_TOKENIZER_TESTING_H_
#define KVICK_FORMATS_TOKENIZER_TESTING_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/piece_spelling.h"
#include "formats/tokenizer_data.h"

// Small vocabularies by hand, for tests and fuzzers.
namespace kvick::testing {

// GPT-2's spelling of bytes, the inverse of BytesOfByteLevel.
inline std::string SpellByteLevel(std::string_view bytes) {
  std::string piece;
  for (unsigned char byte : bytes) {
    // The character whose number is lowest among those that spell the byte: there is one.
    for (int character = 0x21; character < 0x144; ++character) {
      std::string spelled;
      if (character >= 0x80) spelled += static_cast<char>(0xC0 | character >> 6);
      spelled += static_cast<char>(character < 0x80 ? character : 0x80 | (character & 0x3F));
      if (BytesOfByteLevel(spelled) == std::string(1, static_cast<char>(byte))) {
        piece += spelled;
        break;
      }
    }
  }
  return piece;
}

inline int32_t AddToken(TokenizerData& data, std::string piece, TokenType type, float score = 0) {
  data.pieces.push_back(std::move(piece));
  data.types.push_back(type);
  if (data.merge_order == MergeOrder::kByScore) data.scores.push_back(score);
  return static_cast<int32_t>(data.pieces.size()) - 1;
}

// As Llama 2 numbers them: <unk> 0, <s> 1, </s> 2, bytes 3 to 258, then normal pieces from 259 on:
// space, a, b, c, ab, bc, abc, space + a.
inline TokenizerData SmallSentencePiece() {
  TokenizerData data;
  data.space_prefix = SpacePrefix::kEveryStretch;
  data.strips_leading_space = true;
  data.unknown_id = AddToken(data, "<unk>", TokenType::kUnknown);
  data.bos_id = AddToken(data, "<s>", TokenType::kControl);
  data.eos_id = AddToken(data, "</s>", TokenType::kControl);
  data.prefix_ids = {*data.bos_id};
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(data, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  }
  const std::string marker(kSpaceMarker);
  const std::pair<std::string, float> pieces[] = {{marker, -10}, {"a", -11},        {"b", -12},
                                                  {"c", -13},    {"ab", -3},        {"bc", -2},
                                                  {"abc", -5},   {marker + "a", -4}};
  for (const auto& [piece, score] : pieces) AddToken(data, piece, TokenType::kNormal, score);
  return data;
}

// Byte tokens 0 to 255, then merges: 256 "bc", 257 "ab", 258 "abc" (from "a" and "bc"), 259 " a",
// 260 "aa", 261 "aaaa"; then the control token <|end|> 262 and the user-defined token <tool> 263.
inline TokenizerData SmallByteLevel() {
  TokenizerData data;
  data.spelling = PieceSpelling::kByteLevel;
  data.merge_order = MergeOrder::kByRank;
  data.split_patterns = {R"( ?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(data, SpellByteLevel(std::string(1, static_cast<char>(byte))), TokenType::kNormal);
  }
  const std::pair<std::string, std::string> merges[] = {{"b", "c"}, {"a", "b"}, {"a", "bc"},
                                                        {" ", "a"}, {"a", "a"}, {"aa", "aa"}};
  for (const auto& [left, right] : merges) {
    const MergeRule& rule =
        data.merges.emplace_back(MergeRule{SpellByteLevel(left), SpellByteLevel(right)});
    AddToken(data, rule.left + rule.right, TokenType::kNormal);
  }
  data.eos_id = AddToken(data, "<|end|>", TokenType::kControl);
  AddToken(data, "<tool>", TokenType::kUserDefined);
  return data;
}

}  // namespace kvick::testing

#endif  // KVICK_FORMATS_TOKENIZER_TESTING_H_
