#ifndef KVICK_MEASURE_CACHES_H_
#define KVICK_MEASURE_CACHES_H_

#include <cstdint>

namespace kvick {

// Bytes of all last-level caches of this machine together; 0 where the system does not say.
int64_t LastLevelCacheBytes();

// So many bytes that a pass over them all comes from memory: twice the last-level caches, and at
// least 1 GiB, for the caches of a machine whose share we are given may be larger than it says.
int64_t BytesBeyondCaches();

}  // namespace kvick

#endif  // KVICK_MEASURE_CACHES_H_
