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

inline std::string SpellByteLevel(std::string_view bytes) {
  std::string piece;
  SpellBytes(bytes, piece);
  return piece;
}

inline int32_t AddToken(TokenizerData& data, std::string piece, TokenType type, float score = 0) {
  const auto id = static_cast<int32_t>(data.pieces.size());
  const bool is_added =
      type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kUserDefined;
  if (is_added) {
    AddedToken& token = data.added_tokens.emplace_back();
    token.id = id;
    token.content = piece;
    token.special = type != TokenType::kUserDefined;
  }
  data.pieces.push_back(std::move(piece));
  data.types.push_back(type);
  data.in_model.push_back(type == TokenType::kNormal);
  if (data.encoder != EncoderKind::kMergesByRank) data.scores.push_back(score);
  return id;
}

// Spaces as markers, and back.
inline void UseSpaceMarkers(TokenizerData& data) {
  const std::string marker(kSpaceMarker);
  data.normalizer = {ReplaceStep{*TextPattern::FromString(" "), marker}};
  data.decoder.steps = {ReplaceStep{*TextPattern::FromString(marker), " "}, ByteFallbackStep{}};
}

// A marker before each stretch of text, which decoding removes at the start.
inline void PrependSpaceMarker(TokenizerData& data) {
  data.normalizer.insert(data.normalizer.begin(), PrependStep{std::string(kSpaceMarker)});
  data.decoder.strip_content = " ";
  data.decoder.max_start_strips = 1;
}

// As Llama 2 numbers them: <unk> 0, <s> 1, </s> 2, bytes 3 to 258, then normal pieces from 259 on:
// space, a, b, c, ab, bc, abc, space + a.
inline TokenizerData SmallSentencePiece() {
  TokenizerData data;
  UseSpaceMarkers(data);
  PrependSpaceMarker(data);
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

inline constexpr std::string_view kSmallSplit =
    R"( ?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Byte tokens 0 to 255, then merges: 256 "bc", 257 "ab", 258 "abc" (from "a" and "bc"), 259 " a",
// 260 "aa", 261 "aaaa"; then the control token <|end|> 262 and the user-defined token <tool> 263.
inline TokenizerData SmallByteLevel() {
  TokenizerData data;
  data.encoder = EncoderKind::kMergesByRank;
  data.pretokenizer = {SplitStep{*TextPattern::FromRegex(kSmallSplit)}, ByteLevelStep{}};
  data.decoder.steps = {SpelledBytesStep{}};
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
