#ifndef KVICK_BASE_HASH_SEED_H_
#define KVICK_BASE_HASH_SEED_H_

#include <cstdint>

namespace kvick {

// A random number, the same for the whole process. Hash tables over names and numbers that come
// from files mix it into every hash, so that a file cannot choose keys that collide. No result may
// depend on it: a table is looked up, never iterated.
uint64_t HashSeed();

}  // namespace kvick

#endif  // KVICK_BASE_HASH_SEED_H_
