#ifndef KVICK_FORMATS_TOKEN_INDEX_H_
#define KVICK_FORMATS_TOKEN_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvick {

inline constexpr int32_t kNoToken = -1;

// Finds a token by its string. The strings themselves stay with the caller, who passes the same
// ones, indexed by token id, to each call.
//
// The hash has a random seed: a file cannot choose strings that collide.
//
// A flat table with linear probing, 16 bytes a slot and at most half full: a lookup misses the
// caches once for the slot and once for the string. Loading Llama 3's 280,147 merges takes less
// than half the time that it took with std::unordered_map.
class TokenIndex {
 public:
  // Room for `max_tokens` strings.
  explicit TokenIndex(size_t max_tokens);

  // Adds strings[id], unless an equal string is there already.
  void Insert(std::span<const std::string> strings, int32_t id);

  // The first token that was inserted with this string, or kNoToken.
  int32_t Find(std::span<const std::string> strings, std::string_view string) const;

 private:
  struct Slot {
    uint64_t hash = 0;
    int32_t id = kNoToken;
  };

  // The slot that holds `string`, or the free one where it belongs.
  size_t Locate(std::span<const std::string> strings, std::string_view string, uint64_t hash) const;

  std::vector<Slot> slots_;  // a power of two of them
};

}  // namespace kvick

#endif  // KVICK_FORMATS_TOKEN_INDEX_H_
