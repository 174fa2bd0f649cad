#ifndef KVICK_FORMATS_REGEX_H_
#define KVICK_FORMATS_REGEX_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin, end;
  bool operator==(const TextSpan&) const = default;
};

// The work that all expressions together may spend on one text, and the memory that they share.
// Expressions come from files, and one that backtracks must not hang the process.
//
// Backtracking steps are limited in proportion to the text, which gives the same answer on every
// machine. Scanning ahead without backtracking is not counted; it is limited by time, some fifty
// times what the expressions in use need.
class RegexWork {
 public:
  explicit RegexWork(size_t text_bytes);
  RegexWork(const RegexWork&) = delete;
  RegexWork& operator=(const RegexWork&) = delete;
  ~RegexWork();

  size_t text_bytes() const { return text_bytes_; }

 private:
  friend class Regex;
  struct Buffers;

  Status AllocateBuffers();
  // Errors  exhausted: the steps are used up
  Status Spend(uint64_t steps);
  bool HasTime() const;
  // Called wherever a match may begin. Returns whether there is time: looks at the clock every few
  // calls.
  bool StartMatch();

  size_t text_bytes_;
  uint64_t steps_left_;
  std::chrono::steady_clock::time_point deadline_;
  uint32_t num_starts_ = 0;
  std::unique_ptr<Buffers> buffers_;
};

// A regular expression in the syntax of Oniguruma, for which the files of tokenizers are written.
// Copies share the compiled expression. Safe to use from several threads, each with its RegexWork.
class Regex {
 public:
  // Errors  corrupt: not a regular expression;  unsupported: more than 64 KiB, or more than 200
  //         brackets inside one another
  static Result<Regex> Compile(std::string_view pattern);

  // Appends the matches in `text`, from left to right, none of them overlapping. Empty matches
  // count, except one at the end of the match before it. `text` must be UTF-8; an empty one has no
  // match.
  //
  // Errors  exhausted: `work` is used up;  unsupported: a match that begins before the search (\K)
  Status FindAll(std::string_view text, RegexWork& work, std::vector<TextSpan>& matches) const;

 private:
  struct Compiled;

  Status Search(std::string_view text, size_t from, RegexWork& work) const;

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_REGEX_H_
