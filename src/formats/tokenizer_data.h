#ifndef KVICK_FORMATS_TOKENIZER_DATA_H_
#define KVICK_FORMATS_TOKENIZER_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvick {

enum class TokenType : uint8_t {
  kNormal,
  kUnknown,      ///< stands for what the vocabulary cannot express
  kControl,      ///< steers the model, as <s> does; no part of a text
  kUserDefined,  ///< found in a text before anything else, and always whole
  kUnused,       ///< a hole in the vocabulary: never produced from a text
  kByte,         ///< one byte, spelled <0x0A>
};

// How pieces spell the bytes that they stand for.
enum class PieceSpelling {
  kSpaceMarkers,  ///< as they are, with U+2581 for a space (SentencePiece)
  kByteLevel,     ///< each byte as one of 256 printable characters (GPT-2)
};

// Which pair of neighbours is joined first.
enum class MergeOrder {
  kByScore,  ///< the one that makes the piece with the highest score (SentencePiece)
  kByRank,   ///< the one that comes first in a list of merges (GPT-2)
};

// Where a space is put before a stretch of text, so that a word at its start looks like any other.
enum class SpacePrefix {
  kNone,
  kEveryStretch,             ///< at the start and after each special token
  kEveryStretchUnlessSpace,  ///< likewise, but not before a space
  kTextStartUnlessSpace,     ///< at the start alone, and not before a space
};

struct MergeRule {
  std::string left, right;  ///< pieces; their concatenation is a piece too
};

// Everything that a tokenizer is made of, wherever it came from. Token ids are indices of `pieces`.
struct TokenizerData {
  PieceSpelling spelling = PieceSpelling::kSpaceMarkers;
  MergeOrder merge_order = MergeOrder::kByScore;

  std::vector<std::string> pieces;
  std::vector<TokenType> types;   ///< one for each piece
  std::vector<float> scores;      ///< kByScore: one for each piece
  std::vector<MergeRule> merges;  ///< kByRank: first is best

  std::vector<std::string> split_patterns;  ///< kByRank: see PreTokenizer
  bool whole_words_first = false;           ///< kByRank: a word that is a piece needs no merges
  bool fuse_unknown = false;                ///< kByRank: unknown neighbours become one token
  SpacePrefix space_prefix = SpacePrefix::kNone;
  bool strips_leading_space = false;  ///< decoding removes one space at the start of a text

  std::optional<int32_t> bos_id, eos_id, unknown_id;
  std::vector<int32_t> eos_ids;     ///< tokens besides eos_id that end a generation
  std::vector<int32_t> prefix_ids;  ///< put before a text, usually BOS
  std::vector<int32_t> suffix_ids;  ///< put after a text
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_DATA_H_
