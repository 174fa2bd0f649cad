#ifndef KVICK_BASE_HASH_FLOOD_TESTING_H_
#define KVICK_BASE_HASH_FLOOD_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// Strings that all have the same std::hash in libstdc++: what a file would hold to make each lookup
// in a hash table pass over all of its entries.
namespace kvick::testing {

// libstdc++ hashes with MurmurHash64A, which takes 8 bytes a step: h = (h ^ Mix(bytes)) * m with an
// odd m. Two steps whose mixed values both differ in the top bit alone cancel, so that each pair of
// words has two forms of the same effect, and n pairs give 2^n strings.
namespace flood_internal {

inline constexpr uint64_t kMultiplier = (uint64_t{0xc6a4a793} << 32) + 0x5bd1e995;

inline uint64_t Inverse(uint64_t odd) {  // modulo 2^64, by Newton's iteration
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// The word whose mixed value is `mixed`.
inline uint64_t Unmix(uint64_t mixed) {
  const uint64_t inverse = Inverse(kMultiplier);
  mixed *= inverse;
  mixed ^= mixed >> 47;
  return mixed * inverse;
}

}  // namespace flood_internal

// 2^log2_num different strings of 16 * log2_num bytes, any bytes.
inline std::vector<std::string> CollidingStrings(int log2_num) {
  constexpr uint64_t kTopBit = uint64_t{1} << 63;
  const uint64_t words[2] = {flood_internal::Unmix(1), flood_internal::Unmix(1 ^ kTopBit)};
  std::vector<std::string> strings;
  for (size_t i = 0; i < size_t{1} << log2_num; ++i) {
    std::string text;
    for (int pair = 0; pair < log2_num; ++pair) {
      const uint64_t word = words[(i >> pair) & 1];
      char bytes[sizeof(word)];
      std::memcpy(bytes, &word, sizeof(word));
      text.append(bytes, sizeof(bytes)).append(bytes, sizeof(bytes));
    }
    strings.push_back(std::move(text));
  }
  return strings;
}

}  // namespace kvick::testing

#endif  // KVICK_BASE_HASH_FLOOD_TESTING_H_
