#ifndef KVICK_FORMATS_SEGMENT_ENCODER_H_
#define KVICK_FORMATS_SEGMENT_ENCODER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/bpe_merge.h"
#include "formats/tokenizer_data.h"
#include "formats/vocabulary.h"
#include "kvick/status.h"

namespace kvick {

// What becomes of bytes that no token stands for: their byte tokens, or else the unknown token, or,
// where there is none, nothing.
struct Fallback {
  std::optional<int32_t> unknown_id;
  bool fuse_unknown = false;  ///< unknown neighbours in a segment become one token
};

// Byte-pair encoding as SentencePiece does it: starts from characters, joins the two neighbours
// that make the piece with the highest score.
class ScoreEncoder {
 public:
  // Errors    corrupt: another number of scores than of tokens, a score that is not a number
  static Result<ScoreEncoder> Create(const Vocabulary& vocabulary, std::vector<float> scores,
                                     Fallback fallback);

  // Appends the tokens of a text without special tokens. `vocabulary` is the one of Create.
  void Encode(const Vocabulary& vocabulary, std::string_view text, std::vector<int32_t>& ids) const;

 private:
  std::vector<float> scores_;
  Fallback fallback_;
};

// Byte-pair encoding as GPT-2 does it: starts from bytes (byte-level pieces) or characters, joins
// the two neighbours whose merge comes first in a list.
class RankEncoder {
 public:
  // Reads the merges, whole_words_first and spelling of `data`.
  // Errors    corrupt: a merge of or into something that is no token
  static Result<RankEncoder> Create(const Vocabulary& vocabulary, const TokenizerData& data,
                                    Fallback fallback);

  // Appends the tokens of one word. `vocabulary` is the one of Create.
  void Encode(const Vocabulary& vocabulary, std::string_view word, std::vector<int32_t>& ids) const;

 private:
  static uint64_t PairKey(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  std::unordered_map<uint64_t, BpeMerge> merges_;
  PieceSpelling spelling_ = PieceSpelling::kByteLevel;
  bool whole_words_first_ = false;
  Fallback fallback_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_SEGMENT_ENCODER_H_
