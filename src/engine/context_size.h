#ifndef KVICK_ENGINE_CONTEXT_SIZE_H_
#define KVICK_ENGINE_CONTEXT_SIZE_H_

#include <cstdint>

#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/status.h"

namespace kvick {

struct ContextSize {
  int64_t tokens = 0;  // a sequence's most
  bool is_capped = false;
};

// What a sequence may hold, given what the machine has: half of it goes to caches, or without one
// to the activations of a pass over the whole text. Errors: invalid_argument: an option out of
// range;  exhausted: not one block a sequence fits.
Result<ContextSize> ChooseContext(const ModelInfo& info, const EngineOptions& options,
                                  int64_t available_bytes);

// The cache of `max_sequences` sequences of up to context_tokens each.
KvConfig CacheConfig(const ModelInfo& info, const EngineOptions& options, int64_t context_tokens);

}  // namespace kvick

#endif  // KVICK_ENGINE_CONTEXT_SIZE_H_
