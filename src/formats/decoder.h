#ifndef KVICK_FORMATS_DECODER_H_
#define KVICK_FORMATS_DECODER_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/normalizer.h"
#include "kvick/status.h"

namespace kvick {

// Steps that look at one token at a time.
struct ByteFallbackStep {};  ///< <0x0A> becomes its byte
struct StripTokenStep {
  std::string content;  ///< one character
  size_t start, stop;   ///< at most so many of it are removed at either end
};
struct SpelledBytesStep {};  ///< characters become the bytes that they spell, where all spell some
struct UnmarkStep {
  std::string marker;  ///< becomes a space
  bool drops_first;    ///< in the first token of a text it becomes nothing
};

using DecoderStep =
    std::variant<ReplaceStep, ByteFallbackStep, StripTokenStep, SpelledBytesStep, UnmarkStep>;

// How tokens turn back into text: a chain of steps for each token, and what is removed at the start
// of the whole text.
//
// ByteFallback keeps bytes that are no UTF-8 as they are, so that any text comes back from its
// tokens; Hugging Face's makes a replacement character of each.
struct Decoder {
  std::vector<DecoderStep> steps;
  std::string strip_content;    ///< one character
  size_t max_start_strips = 0;  ///< so many of it are removed at the start of a text

  // The bytes of one token. Errors  exhausted: an expression needs more than `work`, or a step
  // makes the token too large
  Result<std::string> TokenBytes(std::string_view piece, bool is_first, RegexWork& work) const;

  // Whether a token at the start of a text gives other bytes than elsewhere.
  bool HasFirstToken() const;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_DECODER_H_
