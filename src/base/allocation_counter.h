#ifndef KVICK_BASE_ALLOCATION_COUNTER_H_
#define KVICK_BASE_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace kvick {

// Heap allocations of all threads since the process started: malloc and its kin, and so operator
// new. A program that links the source file counts, the library itself never does; under
// sanitizers, which bring their own malloc, operator new alone.
int64_t NumAllocations();

}  // namespace kvick

#endif  // KVICK_BASE_ALLOCATION_COUNTER_H_
