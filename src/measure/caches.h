#ifndef KVICK_MEASURE_CACHES_H_
#define KVICK_MEASURE_CACHES_H_

#include <cstdint>

namespace kvick {

// Bytes of all last-level caches of this machine together, from the system or else from the
// processor; 0 if neither tells.
int64_t LastLevelCacheBytes();

// A number of bytes so large that a pass over them reads from memory: twice the last-level caches,
// and at least 1 GiB, because a virtual machine may share larger caches than it reports.
int64_t BytesBeyondCaches();

}  // namespace kvick

#endif  // KVICK_MEASURE_CACHES_H_
