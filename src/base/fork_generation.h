#ifndef KVICK_BASE_FORK_GENERATION_H_
#define KVICK_BASE_FORK_GENERATION_H_

#include <cstdint>

namespace kvick {

// How many fork() calls lie between the start of the program and this process: 0 in the parent, one
// more in each child. A child has none of its parent's threads but the one that called fork(), and
// locks that others held stay locked: whoever owns threads compares this with the number at their
// start. Cost: one load.
uint32_t ForkGeneration();

}  // namespace kvick

#endif  // KVICK_BASE_FORK_GENERATION_H_
