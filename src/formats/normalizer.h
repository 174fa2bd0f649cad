#ifndef KVICK_FORMATS_NORMALIZER_H_
#define KVICK_FORMATS_NORMALIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/charsmap.h"
#include "formats/regex.h"
#include "formats/text_pattern.h"
#include "formats/unicode.h"
#include "kvick/status.h"

namespace kvick {

struct PrependStep {
  std::string text;  ///< put before a text that is not empty
};
struct ReplaceStep {
  TextPattern pattern;
  std::string content;
};
struct StripStep {
  bool left, right;  ///< white space
};
struct LowercaseStep {};
struct StripAccentsStep {};  ///< drops combining marks; accents have to be decomposed before
struct PrecompiledStep {
  std::shared_ptr<const Charsmap> charsmap;
};
// SentencePiece's own normalizer: the longest entries of the charsmap, if there is one, are
// replaced; spaces become `space`, and one is put before the first word.
struct SentencePieceStep {
  std::shared_ptr<const Charsmap> charsmap;
  std::string space;
  bool adds_space = true;
  bool merges_spaces = false;  ///< those at either end are dropped, of others one is left
};
struct SpellBytesStep {};  ///< each byte becomes the character that spells it: see SpellBytes

using NormalizerStep =
    std::variant<UnicodeForm, PrependStep, ReplaceStep, StripStep, LowercaseStep, StripAccentsStep,
                 PrecompiledStep, SentencePieceStep, SpellBytesStep>;

struct NormalizedText {
  std::string text;
  bool keeps_start = true;  ///< its first character comes from the first one that was normalized
};

// Rewrites a text before it is cut and encoded: a chain of steps, each on the result of the one
// before. Bytes that are no UTF-8 go through unchanged.
class Normalizer {
 public:
  explicit Normalizer(std::vector<NormalizerStep> steps = {}) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }

  // Errors  exhausted: an expression needs more than `work`, or the text grows beyond all measure
  Result<NormalizedText> Normalize(std::string_view text, RegexWork& work) const;

 private:
  std::vector<NormalizerStep> steps_;
};

// The largest text that steps may make of one of `num_bytes`: normal forms need 11 bytes for one.
inline size_t MaxRewrittenBytes(size_t num_bytes) { return 64 * num_bytes + (size_t{64} << 10); }

// The text with each match of `pattern` replaced. Errors  as Normalize.
Result<NormalizedText> ReplaceMatches(std::string_view text, const ReplaceStep& step,
                                      RegexWork& work);

}  // namespace kvick

#endif  // KVICK_FORMATS_NORMALIZER_H_
