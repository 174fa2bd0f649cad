#ifndef KVICK_ENGINE_CONTEXT_SIZE_H_
#define KVICK_ENGINE_CONTEXT_SIZE_H_

#include <cstdint>
#include <optional>

#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/status.h"

namespace kvick {

struct ContextSize {
  int64_t tokens = 0;  // a sequence's most
  bool is_capped = false;
};

// What a sequence may hold, given what the machine has: half of it goes to caches, or as much as
// options.cache_bytes says to one text. Errors: invalid_argument: an option out of range;
// exhausted: not one block a sequence fits.
Result<ContextSize> ChooseContext(const ModelInfo& info, const EngineOptions& options,
                                  int64_t available_bytes);

// The same without a cache: half goes to the activations of a pass over the whole text.
Result<ContextSize> ChooseUncachedContext(const ModelInfo& info, int64_t context_tokens,
                                          int64_t available_bytes);

// The cache of these options for texts of up to context_tokens each.
KvConfig CacheConfig(const ModelInfo& info, const EngineOptions& options, int64_t context_tokens);

// Of keys and values in all layers; nullopt: the type that the model's caches have by default.
// Errors: invalid_argument: a type that no cache has.
Result<int64_t> CacheBytesPerToken(const ModelInfo& info, std::optional<DType> kv_dtype);

// What one pass takes at most.
int64_t BatchTokens(const EngineOptions& options);

}  // namespace kvick

#endif  // KVICK_ENGINE_CONTEXT_SIZE_H_
