#ifndef KVICK_APPS_KVICK_BENCH_DATA_H_
#define KVICK_APPS_KVICK_BENCH_DATA_H_

#include <cstdint>
#include <vector>

#include "kvick/kv_cache.h"
#include "kvick/status.h"

namespace kvick::cli {

struct RandomSequences {
  int64_t num_sequences = 1;
  int64_t num_tokens = 0;
  int num_threads = 1;
};

// Adds sequences of random keys and values to a cache, in the way that a model does, but without
// computing them. The same sequences whatever the blocks of the cache. Errors: exhausted.
Result<std::vector<SequenceId>> AddRandomSequences(KvCache& cache, const RandomSequences& wanted);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_DATA_H_
