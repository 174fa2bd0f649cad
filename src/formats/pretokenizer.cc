#include "formats/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "formats/utf8.h"

namespace kvick {
namespace {

constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr uint32_t kMaxHeapKib = 64 << 10;

// Backtracking steps from one start. The expressions in use take a few steps for each byte that
// they look at, so a text of n bytes may need a few n at once, and no more.
uint32_t MaxMatchSteps(size_t text_bytes) {
  constexpr size_t kBase = 100'000, kPerByte = 16, kMax = UINT32_MAX;
  return static_cast<uint32_t>(std::min(kMax, kBase + std::min(kMax, text_bytes) * kPerByte));
}

template <auto kFree>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using CodePtr = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContextPtr =
    std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;

// Tokenizers mean White_Space by \s; PCRE2's own \s has U+180E on top, a joiner inside Mongolian
// words.
std::string UseUnicodeWhiteSpace(std::string_view pattern) {
  std::string result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      result += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') {
      result += "\\p{White_Space}";
    } else if (escaped == 'S') {
      result += "\\P{White_Space}";
    } else {
      result += {'\\', escaped};
    }
  }
  return result;
}

// Calls `on_text` for each longest stretch of UTF-8 and `on_byte` for each byte that is none.
template <class OnText, class OnByte>
void ForEachUtf8Stretch(std::string_view bytes, OnText on_text, OnByte on_byte) {
  size_t begin = 0, pos = 0;
  while (pos < bytes.size()) {
    const Utf8Unit unit = NextUtf8(bytes.substr(pos));
    if (unit.kind == Utf8Kind::kCharacter) {
      pos += unit.num_bytes;
      continue;
    }
    if (begin < pos) on_text(bytes.substr(begin, pos - begin));
    for (size_t i = 0; i < unit.num_bytes; ++i) on_byte(bytes.substr(pos + i, 1));
    begin = pos += unit.num_bytes;
  }
  if (begin < pos) on_text(bytes.substr(begin));
}

}  // namespace

class PreTokenizer::Pattern {
 public:
  static Result<Pattern> Compile(std::string_view source) {
    const std::string text = UseUnicodeWhiteSpace(source);
    CompileContextPtr context(pcre2_compile_context_create(nullptr));
    if (context) pcre2_set_max_pattern_length(context.get(), kMaxPatternBytes);
    int error_code = 0;
    PCRE2_SIZE error_offset = 0;
    // \C could stop inside a character, where the next match may not start.
    constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    Pattern pattern;
    pattern.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                      kOptions, &error_code, &error_offset, context.get()));
    if (!pattern.code_) {
      char message[128] = "unknown error";
      pcre2_get_error_message(error_code, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
      return Fail(ErrorCode::kCorrupt,
                  "the pre-tokenizer's regular expression cannot be compiled: {} at byte {}",
                  message, error_offset);
    }
    // Where the machine refuses memory that can be executed, matching interprets instead.
    pcre2_jit_compile(pattern.code_.get(), PCRE2_JIT_COMPLETE);
    return pattern;
  }

  std::vector<std::string_view> Split(const std::vector<std::string_view>& words,
                                      size_t text_bytes) const {
    const Scratch scratch(text_bytes);
    if (!scratch.match || !scratch.context) return words;
    std::vector<std::string_view> shorter;
    for (std::string_view word : words) {
      ForEachUtf8Stretch(
          word, [&](std::string_view stretch) { SplitStretch(stretch, scratch, shorter); },
          [&](std::string_view byte) { shorter.push_back(byte); });
    }
    return shorter;
  }

 private:
  struct Scratch {
    explicit Scratch(size_t text_bytes)
        : match(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
      if (!context) return;
      pcre2_set_match_limit(context.get(), MaxMatchSteps(text_bytes));
      pcre2_set_heap_limit(context.get(), kMaxHeapKib);
    }

    MatchDataPtr match;
    MatchContextPtr context;
  };

  void SplitStretch(std::string_view text, const Scratch& scratch,
                    std::vector<std::string_view>& words) const {
    size_t end = 0;  // of the last word
    size_t pos = 0;  // where the next match may start
    while (pos < text.size() && Match(text, pos, scratch) >= 0) {
      const PCRE2_SIZE* span = pcre2_get_ovector_pointer(scratch.match.get());
      if (span[0] < pos || span[1] < span[0]) break;  // \K can do that
      if (span[0] == span[1]) {                       // an empty match is no word
        if (span[1] == text.size()) break;
        pos = span[1] + NextUtf8(text.substr(span[1])).num_bytes;
        continue;
      }
      if (end < span[0]) words.push_back(text.substr(end, span[0] - end));
      words.push_back(text.substr(span[0], span[1] - span[0]));
      end = pos = span[1];
    }
    if (end < text.size()) words.push_back(text.substr(end));
  }

  // The text is known to be UTF-8: letting PCRE2 check what is left of it before each match would
  // make the whole quadratic.
  int Match(std::string_view text, size_t pos, const Scratch& scratch) const {
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int result = pcre2_match(code_.get(), subject, text.size(), pos, PCRE2_NO_UTF_CHECK,
                             scratch.match.get(), scratch.context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result =
          pcre2_match(code_.get(), subject, text.size(), pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                      scratch.match.get(), scratch.context.get());
    }
    return result;
  }

  CodePtr code_;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::Create(const std::vector<std::string>& patterns) {
  PreTokenizer pretokenizer;
  for (const std::string& source : patterns) {
    KVICK_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(source));
    pretokenizer.patterns_.push_back(std::move(pattern));
  }
  return pretokenizer;
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (text.empty()) return words;
  words.push_back(text);
  for (const Pattern& pattern : patterns_) words = pattern.Split(words, text.size());
  return words;
}

}  // namespace kvick
