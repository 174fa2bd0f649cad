#ifndef KVICK_BASE_ALLOCATION_COUNTER_TESTING_H_
#define KVICK_BASE_ALLOCATION_COUNTER_TESTING_H_

#include <cstdint>

namespace kvick::testing {

// Heap allocations of all threads since the process started: malloc and its kin, and so operator
// new. A test binary that links the source file counts; under sanitizers, which bring their own
// malloc, operator new alone.
int64_t NumAllocations();

}  // namespace kvick::testing

#endif  // KVICK_BASE_ALLOCATION_COUNTER_TESTING_H_
