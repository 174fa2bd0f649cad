#ifndef KVICK_FORMATS_PRETOKENIZER_H_
#define KVICK_FORMATS_PRETOKENIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// The split of GPT-2, which Hugging Face's ByteLevel applies where `use_regex` is set.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Cuts a text into the words that byte-pair merges may not cross. Each regular expression cuts what
// the one before it left: a match is a word, and so is each stretch between matches. Nothing is
// ever lost: the words joined are the text.
//
// Bytes that are no UTF-8 are words of one byte each, which no expression sees. Where an expression
// exceeds its limits of time and memory, the rest of that stretch is one word.
class PreTokenizer {
 public:
  // No patterns: a text is one word.
  // Errors    corrupt: not a regular expression, or one too large
  static Result<PreTokenizer> Create(const std::vector<std::string>& patterns);

  PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // The words are views into `text`. Safe to call from several threads.
  std::vector<std::string_view> Split(std::string_view text) const;

 private:
  class Pattern;

  std::vector<Pattern> patterns_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_PRETOKENIZER_H_
