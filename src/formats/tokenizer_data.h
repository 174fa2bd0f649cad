#ifndef KVICK_FORMATS_TOKENIZER_DATA_H_
#define KVICK_FORMATS_TOKENIZER_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/added_tokens.h"
#include "formats/decoder.h"
#include "formats/merge_table.h"
#include "formats/normalizer.h"
#include "formats/pretokenizer.h"

namespace kvick {

enum class TokenType : uint8_t {
  kNormal,
  kUnknown,      ///< stands for what the vocabulary cannot express
  kControl,      ///< steers the model, as <s> does; no part of a text
  kUserDefined,  ///< an added token that is text
  kUnused,       ///< a hole in the vocabulary: never produced from a text
  kByte,         ///< one byte, spelled <0x0A>
};

// How a piece of text becomes tokens.
enum class EncoderKind {
  kMergesByScore,  ///< joins first the pair that makes the piece with the highest score (Llama 2)
  kMergesByRank,   ///< joins first the pair that comes first in a list of merges (GPT-2)
  kUnigram,        ///< the pieces with the largest sum of scores (T5)
};

struct MergeRule {
  std::string left, right;  ///< pieces; their concatenation is a piece too
};

// Everything that a tokenizer is made of, wherever it came from. Token ids are indices of `pieces`.
//
// A text is cut at the added tokens that are not normalized; the rest is normalized, cut at those
// that are, cut by the pre-tokenizer, and its pieces are encoded one by one.
struct TokenizerData {
  EncoderKind encoder = EncoderKind::kMergesByScore;

  std::vector<std::string> pieces;
  std::vector<TokenType> types;   ///< one for each piece
  std::vector<bool> in_model;     ///< one for each piece: text may become it, by merges or whole
  std::vector<double> scores;     ///< kMergesByScore, kUnigram: one for each piece
  double unknown_score = 0;       ///< kUnigram: of a character that is no piece
  std::vector<MergeRule> merges;  ///< kMergesByRank: first is best
  DuplicateMerges duplicate_merges = DuplicateMerges::kLastCounts;

  bool whole_words_first = false;  ///< kMergesByRank: a word that is a piece needs no merges
  bool fuse_unknown = false;       ///< kMergesByRank: unknown neighbours become one token

  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pretokenizer;
  Decoder decoder;
  bool decodes_added_tokens = true;  ///< false: the decoder leaves added tokens as they are

  std::optional<int32_t> bos_id, eos_id, unknown_id;
  std::vector<int32_t> eos_ids;     ///< tokens besides eos_id that end a generation
  std::vector<int32_t> prefix_ids;  ///< put before a text, usually BOS
  std::vector<int32_t> suffix_ids;  ///< put after a text
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_DATA_H_
