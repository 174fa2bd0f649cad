#ifndef KVICK_FORMATS_ADDED_TOKENS_H_
#define KVICK_FORMATS_ADDED_TOKENS_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/token_index.h"
#include "kvick/status.h"

namespace kvick {

inline constexpr size_t kMaxAddedTokenBytes = 1024;  ///< after normalization

// A token that is found in a text before anything else, and always whole.
struct AddedToken {
  int32_t id = kNoToken;
  std::string content;
  bool special = false;      ///< steers the model: no part of a decoded text
  bool normalized = false;   ///< looked for in the normalized text, as its normal form
  bool single_word = false;  ///< only where no word character is beside it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space behind it
};

// Errors  unsupported: more than kMaxAddedTokenBytes
Status CheckAddedTokenSize(int32_t id, size_t num_bytes);

enum class SpecialTokens {
  kAsText,    ///< <s> in a text is three characters
  kAsTokens,  ///< <s> in a text is the token
};

// Finds added tokens in a text.
class AddedTokenFinder {
 public:
  // A part of the text: a token, or what lies between two tokens (id is kNoToken).
  struct Part {
    size_t begin, end;
    int32_t id;
  };

  // Tokens without content are never found. Of two with the same content the first is.
  // Errors  unsupported: a token of more than kMaxAddedTokenBytes
  static Result<AddedTokenFinder> Create(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // The parts of `text` in order, none empty. Of the tokens that begin at a byte the longest
  // counts; a token that is found where it may not stand is text, with all that is inside of it.
  //
  // Cost  O(bytes * longest token * log(tokens))
  std::vector<Part> Find(std::string_view text, SpecialTokens specials) const;

 private:
  const AddedToken* LongestAtStart(std::string_view text, SpecialTokens specials) const;

  std::vector<AddedToken> tokens_;  // by content
  std::vector<int32_t> prefixes_;   // of each the longest token that it begins with
  std::bitset<256> first_bytes_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_ADDED_TOKENS_H_
