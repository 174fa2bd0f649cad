#ifndef KVICK_FORMATS_UNIGRAM_ENCODER_H_
#define KVICK_FORMATS_UNIGRAM_ENCODER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/encoder_scratch.h"
#include "formats/piece_trie.h"
#include "formats/tokenizer_data.h"
#include "formats/vocabulary.h"
#include "kvick/status.h"

namespace kvick {

// Unigram, as Hugging Face's tokenizers do it: of all ways to write a text as pieces, the one whose
// scores have the largest sum (Viterbi, in double precision). Of equal sums, the one whose last
// piece begins first counts, and so on for what is before it.
//
// A character that is no piece counts as one of `unknown_score`. Neighbouring ones are one token:
// their bytes', or else the unknown token, or, where there is none, nothing.
class UnigramEncoder {
 public:
  // Takes the scores of `data`; reads unknown_score and unknown_id.
  // Errors  corrupt: another number of scores than of tokens, a score that is not finite
  static Result<UnigramEncoder> Create(const Vocabulary& vocabulary, TokenizerData& data);

  // Appends the tokens of a piece of text of less than 4 GiB. `vocabulary` is the one of Create.
  // Cost  O(bytes * bytes of the longest piece)
  void Encode(const Vocabulary& vocabulary, std::string_view text, EncoderScratch& scratch,
              std::vector<int32_t>& ids) const;

 private:
  void FindBestPath(std::string_view text, std::vector<UnigramStep>& steps) const;
  void AppendUnknown(const Vocabulary& vocabulary, std::string_view text,
                     std::vector<int32_t>& ids) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_id_ = kNoToken;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_UNIGRAM_ENCODER_H_
