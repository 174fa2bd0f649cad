#ifndef KVICK_FORMATS_TOKENIZER_H_
#define KVICK_FORMATS_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "formats/added_tokens.h"
#include "formats/bpe_encoder.h"
#include "formats/decoder.h"
#include "formats/normalizer.h"
#include "formats/pretokenizer.h"
#include "formats/tokenizer_data.h"
#include "formats/unigram_encoder.h"
#include "formats/vocabulary.h"
#include "kvick/status.h"

namespace kvick {

struct EncodeOptions {
  bool add_special = true;    ///< put BOS (and EOS) around the text where the tokenizer says so
  bool parse_special = true;  ///< <s> in the text is the control token, not three characters
};

// Turns text into token ids and back. Any bytes are text; what is no UTF-8 becomes byte tokens.
// Move-only; const functions are safe to call from several threads.
class Tokenizer {
 public:
  // Errors  corrupt: the data contradict themselves;  unsupported: see AddedTokenFinder;
  //         exhausted: a step makes a token too large or needs too much work
  static Result<Tokenizer> Create(TokenizerData data);

  // Errors  exhausted: a regular expression or a replacement of the tokenizer needs too much time
  //         or memory for this text, or it has more than 1 GiB
  // Cost    O(n log n) for n bytes, whatever they are, times the number of steps; O(n) where they
  //         repeat themselves
  Result<std::vector<int32_t>> Encode(std::string_view text, EncodeOptions options = {}) const;

  // The text that the ids stand for, from its start on. Control, unknown and unused tokens, and ids
  // that are no tokens (the padding of an embedding), stand for nothing. Decode(Encode(text)) is
  // `text`, unless the normalizer changes it, the vocabulary lacks tokens for its bytes, or it
  // spells spaces by U+2581 and the text has that.
  std::string Decode(std::span<const int32_t> ids) const;

  int32_t vocab_size() const { return vocabulary_.size(); }
  std::optional<int32_t> bos_id() const { return bos_id_; }

  // All tokens that end a generation: EOS, end of turn, end of message. Ascending.
  const std::vector<int32_t>& eos_ids() const { return eos_ids_; }

  // What the token adds to a text, its leading space included; for one at the start, see
  // Detokenizer. Empty for an id that is no token.
  std::string_view TokenBytes(int32_t id) const;

 private:
  friend class Detokenizer;

  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  Status NormalizeAddedTokens(std::vector<AddedToken>& tokens);
  Status SetDecoder(TokenizerData& data);
  Status SetAddedTokens(std::vector<AddedToken> tokens);
  const std::string& Spelling(int32_t id) const;
  bool IsText(int32_t id) const;
  struct Encoding;
  Status EncodeStretch(std::string_view stretch, bool at_start, Encoding& encoding) const;
  void EncodePiece(std::string_view piece, Encoding& encoding) const;

  Vocabulary vocabulary_;
  AddedTokenFinder added_tokens_;             // found in the text as it is
  AddedTokenFinder normalized_added_tokens_;  // found in the normalized text
  Normalizer normalizer_;
  PreTokenizer pretokenizer_;
  std::variant<ScoreEncoder, RankEncoder, UnigramEncoder> encoder_;
  bool cuts_at_markers_ = false;
  Decoder decoder_;
  std::vector<std::string> token_bytes_;                   // what each token adds to a text
  std::unordered_map<int32_t, std::string> normal_forms_;  // of added tokens, where they differ
  std::optional<int32_t> bos_id_;
  std::vector<int32_t> eos_ids_, prefix_ids_, suffix_ids_;
};

enum class DecodeFrom {
  kTextStart,  ///< what the decoder removes at the start of a text is removed
  kTextRest,   ///< the tokens go on a text, as generated ones do after a prompt
};

// Decodes token by token. A token may be a part of a character: see Utf8Stream.
class Detokenizer {
 public:
  // `tokenizer` must outlive it.
  Detokenizer(const Tokenizer& tokenizer, DecodeFrom from);

  // The bytes that the next token adds; they live until the next call.
  std::string_view Append(int32_t id);

 private:
  std::string_view StripStart(std::string_view bytes);

  const Tokenizer& tokenizer_;
  bool is_first_;           // no token of the text was decoded yet
  size_t num_strips_left_;  // characters that the decoder may still remove at the start
  std::string bytes_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_H_
