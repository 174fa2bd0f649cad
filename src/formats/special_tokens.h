#ifndef KVICK_FORMATS_SPECIAL_TOKENS_H_
#define KVICK_FORMATS_SPECIAL_TOKENS_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/vocabulary.h"
#include "kvick/status.h"

namespace kvick {

enum class SpecialTokens {
  kUserDefinedOnly,  ///< <s> in a text is three characters
  kAll,              ///< <s> in a text is the control token
};

// Finds the tokens that a text contains literally, whatever the merges would make of it.
class SpecialTokenMatcher {
 public:
  struct Match {
    size_t begin, end;  ///< bytes of the text
    int32_t id;
  };

  // Errors    unsupported: a special token of more than 1024 bytes
  static Result<SpecialTokenMatcher> Create(const Vocabulary& vocabulary);

  // The leftmost match that begins at or after `from`; of several there, the longest.
  //
  // Cost      O(bytes passed * longest special token)
  std::optional<Match> FindNext(std::string_view text, size_t from, SpecialTokens which) const;

 private:
  struct Entry {
    std::string_view text;  // the vocabulary's
    int32_t id;
    bool user_defined;
  };

  const Entry* LongestAtStart(std::string_view text, SpecialTokens which) const;

  std::vector<Entry> entries_;  // by text
  std::bitset<256> first_bytes_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_SPECIAL_TOKENS_H_
