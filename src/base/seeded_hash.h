#ifndef KVICK_BASE_SEEDED_HASH_H_
#define KVICK_BASE_SEEDED_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvick {

// XXH3 with a seed that is drawn at random once per process. For hash tables whose keys come from
// files or requests: with std::hash, whose values anybody can compute, a file can choose names that
// collide, and each lookup then passes over all of them.
//
// Equal keys have equal hashes within the process only: no result may depend on the order of such a
// table. Cost: a few ns for a short key.
uint64_t SeededHash(std::string_view bytes);
uint64_t SeededHash(uint64_t key);

// The same as the Hash parameter of std::unordered_map and std::unordered_set.
struct SeededHasher {
  using is_transparent = void;

  size_t operator()(std::string_view bytes) const { return SeededHash(bytes); }
  size_t operator()(uint64_t key) const { return SeededHash(key); }
};

}  // namespace kvick

#endif  // KVICK_BASE_SEEDED_HASH_H_
