#ifndef KVICK_FORMATS_BPE_ENCODER_H_
#define KVICK_FORMATS_BPE_ENCODER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/encoder_scratch.h"
#include "formats/merge_table.h"
#include "formats/tokenizer_data.h"
#include "formats/vocabulary.h"
#include "kvick/status.h"

namespace kvick {

// Byte-pair encoding as SentencePiece does it: starts from characters, joins the two neighbours
// that make the piece with the highest score. What is no token in the end becomes its byte tokens,
// or else the unknown token, or, where there is none, nothing.
class ScoreEncoder {
 public:
  // Errors  corrupt: another number of scores than of tokens, a score that is not a number
  static Result<ScoreEncoder> Create(const Vocabulary& vocabulary, TokenizerData& data);

  // Appends the tokens of a piece of text of less than 4 GiB. `vocabulary` is the one of Create.
  void Encode(const Vocabulary& vocabulary, std::string_view piece, EncoderScratch& scratch,
              std::vector<int32_t>& ids) const;

 private:
  std::vector<double> scores_;
  std::optional<int32_t> unknown_id_;
};

// Byte-pair encoding as Hugging Face's tokenizers do it: starts from characters that are tokens,
// joins the two neighbours whose merge comes first in a list. Before anything is merged, a
// character that is no token becomes its byte tokens, or else the unknown token, or, where there is
// none, nothing.
class RankEncoder {
 public:
  // Reads merges, whole_words_first, fuse_unknown and unknown_id of `data`.
  // Errors  corrupt: a merge of or into something that is no token
  static Result<RankEncoder> Create(const Vocabulary& vocabulary, const TokenizerData& data);

  // Appends the tokens of a piece of text of less than 4 GiB. `vocabulary` is the one of Create.
  void Encode(const Vocabulary& vocabulary, std::string_view piece, EncoderScratch& scratch,
              std::vector<int32_t>& ids) const;

 private:
  void FindInitialTokens(const Vocabulary& vocabulary, std::string_view piece,
                         std::vector<int32_t>& tokens) const;

  MergeTable merges_;
  bool whole_words_first_ = false;
  bool fuse_unknown_ = false;
  std::optional<int32_t> unknown_id_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_BPE_ENCODER_H_
