#ifndef KVICK_FORMATS_TOKENIZER_H_
#define KVICK_FORMATS_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/pretokenizer.h"
#include "formats/segment_encoder.h"
#include "formats/special_tokens.h"
#include "formats/tokenizer_data.h"
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
  // Errors    corrupt: the data contradict themselves;  unsupported: see SpecialTokenMatcher
  static Result<Tokenizer> Create(TokenizerData data);

  // Cost      O(n log n) for n bytes, whatever they are
  std::vector<int32_t> Encode(std::string_view text, EncodeOptions options = {}) const;

  // The text that the ids stand for, from its start on. Control, unknown and unused tokens, and ids
  // that are no tokens (the padding of an embedding), stand for nothing. Decode(Encode(text)) is
  // `text`, unless the vocabulary lacks tokens for its bytes, or spells spaces by U+2581 and the
  // text has that.
  std::string Decode(std::span<const int32_t> ids) const;

  int32_t vocab_size() const { return vocabulary_.size(); }
  std::optional<int32_t> bos_id() const { return bos_id_; }

  // All tokens that end a generation: EOS, end of turn, end of message. Ascending.
  const std::vector<int32_t>& eos_ids() const { return eos_ids_; }

  // What the token adds to a text, its leading space included; for one at the start, see
  // Detokenizer. Empty for an id that is no token.
  std::string_view TokenBytes(int32_t id) const;

  bool strips_leading_space() const { return strips_leading_space_; }

 private:
  Tokenizer(Vocabulary vocabulary, SpecialTokenMatcher special_tokens)
      : vocabulary_(std::move(vocabulary)), special_tokens_(std::move(special_tokens)) {}

  bool NeedsSpacePrefix(std::string_view text, size_t stretch_begin) const;
  void EncodeStretch(std::string_view stretch, size_t stretch_begin,
                     std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  SpecialTokenMatcher special_tokens_;
  PreTokenizer pretokenizer_;
  std::variant<ScoreEncoder, RankEncoder> encoder_;
  PieceSpelling spelling_ = PieceSpelling::kSpaceMarkers;
  bool cuts_at_spaces_ = false;
  SpacePrefix space_prefix_ = SpacePrefix::kNone;
  bool strips_leading_space_ = false;
  std::optional<int32_t> bos_id_;
  std::vector<int32_t> eos_ids_, prefix_ids_, suffix_ids_;
};

enum class DecodeFrom {
  kTextStart,  ///< the space that encoding put before the first word is left out
  kTextRest,   ///< the tokens go on a text, as generated ones do after a prompt
};

// Decodes token by token. A token may be a part of a character: see Utf8Stream.
class Detokenizer {
 public:
  // `tokenizer` must outlive it.
  Detokenizer(const Tokenizer& tokenizer, DecodeFrom from)
      : tokenizer_(tokenizer),
        strip_space_(from == DecodeFrom::kTextStart && tokenizer.strips_leading_space()) {}

  // The bytes that the next token adds; they live as long as the tokenizer.
  std::string_view Append(int32_t id);

 private:
  const Tokenizer& tokenizer_;
  bool strip_space_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKENIZER_H_
