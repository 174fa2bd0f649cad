#ifndef KVICK_FORMATS_CHARSMAP_H_
#define KVICK_FORMATS_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvick/status.h"

namespace kvick {

// SentencePiece's precompiled_charsmap: what characters and short sequences of them are replaced
// by. A u32 counts the bytes of a trie (a double array as Darts-clone writes it, in u32), which
// follow; its values are offsets into the rest, where each replacement ends with a zero byte.
class Charsmap {
 public:
  // Errors  corrupt: the bytes end within the trie, or the trie is no array of u32
  static Result<Charsmap> Parse(std::string_view bytes);

  // `text` with each grapheme of less than six bytes, or else each character, replaced where the
  // map has an entry that it begins with; the shortest such entry counts. So does Hugging Face's
  // tokenizers. Bytes that are no UTF-8 stay. nullopt for a result of more than `max_bytes`.
  std::optional<std::string> Replace(std::string_view text, size_t max_bytes) const;

  // The longest entry that `text` begins with, as SentencePiece itself takes it.
  struct Entry {
    size_t num_bytes;              // of the text
    std::string_view replacement;  // lives as long as the map
  };
  std::optional<Entry> FindLongest(std::string_view text) const;

 private:
  // Calls `visit(entry)` for the entries that `text` begins with, the shortest first, until it
  // gives false.
  template <class Visit>
  void ForEachEntry(std::string_view text, Visit visit) const;
  std::optional<Entry> FindShortest(std::string_view text) const;
  void AppendReplaced(std::string_view grapheme, std::string& result) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_CHARSMAP_H_
