#ifndef KVICK_APPS_KVICK_BENCH_DATA_H_
#define KVICK_APPS_KVICK_BENCH_DATA_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvick/kv_cache.h"
#include "kvick/status.h"

namespace kvick::cli {

// Adds random keys and values to each sequence, in the way that a model does, but without
// computing them. The same numbers whatever the blocks of the cache. Errors: exhausted.
struct RandomTokens {
  std::span<const SequenceId> sequences;
  int64_t num_tokens = 0;  // of each; 0: nothing happens
  int num_threads = 1;

  Status AppendTo(KvCache& cache) const;
};

// "1 token", "4 tokens".
std::string Counted(int64_t num, std::string_view noun);

// "contiguous" for 0, "paged 16".
std::string LayoutName(int64_t block_tokens);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCH_DATA_H_
