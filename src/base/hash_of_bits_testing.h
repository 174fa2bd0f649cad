#ifndef KVICK_BASE_HASH_OF_BITS_TESTING_H_
#define KVICK_BASE_HASH_OF_BITS_TESTING_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace kvick::testing {

// FNV-1a over the bytes of the numbers, lowest first: a short record of all their bits. A test that
// holds one fails where a machine, a compiler or a change computes another number.
template <class Float>
uint64_t HashOfBits(const std::vector<Float>& values) {
  using Bits = std::conditional_t<sizeof(Float) == sizeof(uint64_t), uint64_t, uint32_t>;
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Float value : values) {
    const auto bits = std::bit_cast<Bits>(value);
    for (size_t shift = 0; shift < 8 * sizeof(Bits); shift += 8) {
      hash = (hash ^ ((bits >> shift) & 0xff)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace kvick::testing

#endif  // KVICK_BASE_HASH_OF_BITS_TESTING_H_
