#ifndef KVICK_FORMATS_PRETOKENIZER_H_
#define KVICK_FORMATS_PRETOKENIZER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/regex.h"
#include "formats/text_pattern.h"
#include "kvick/status.h"

namespace kvick {

// The split of GPT-2, which Hugging Face's ByteLevel applies where `use_regex` is set.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A character class as something to split at; each character is a match of its own.
enum class CharacterClass { kNumeric, kPunctuation, kWhiteSpace };

// What becomes of the matches of a split.
enum class SplitBehavior {
  kRemoved,
  kIsolated,            ///< each match is a piece
  kMergedWithPrevious,  ///< a match ends the piece before it
  kMergedWithNext,      ///< a match begins the piece after it
  kContiguous,          ///< neighbouring matches are one piece
};

struct SplitStep {
  std::variant<TextPattern, CharacterClass> pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  ///< matches are what lies between, and the other way round
};

// Runs of word characters and runs of other characters; white space is dropped.
struct WhitespaceStep {};

// Spells each byte of the text by a character: see SpellBytes.
struct ByteLevelStep {
  bool add_prefix_space = false;  ///< before each piece that does not begin with one
  std::optional<Regex> split;     ///< isolates matches before anything is spelled
};

enum class PrependScheme { kAlways, kFirst, kNever };

// Turns spaces into a marker, and puts one before pieces that begin otherwise: before all, before
// that at the start of the text, or before none.
struct MetaspaceStep {
  std::string marker;
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;  ///< each marker begins a piece
};

using PreTokenizerStep = std::variant<SplitStep, WhitespaceStep, ByteLevelStep, MetaspaceStep>;

// Cuts a text into pieces that merges may not cross, and rewrites them: a chain of steps, each on
// the pieces of the one before. Bytes that are no UTF-8 become pieces of one byte each at the first
// split: they are never removed, and no pattern sees them.
class PreTokenizer {
 public:
  // A text and the pieces that are left of it, none of them empty.
  struct Pieces {
    std::string text;
    std::vector<TextSpan> spans;
    bool at_start = true;  ///< the first piece is the start of what the user wrote
  };

  explicit PreTokenizer(std::vector<PreTokenizerStep> steps = {}) : steps_(std::move(steps)) {}

  // Errors  exhausted: an expression needs more than `work`
  Status Split(Pieces& pieces, RegexWork& work) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_PRETOKENIZER_H_
