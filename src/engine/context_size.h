#ifndef KVICK_ENGINE_CONTEXT_SIZE_H_
#define KVICK_ENGINE_CONTEXT_SIZE_H_

#include <cstdint>
#include <optional>

#include "kvick/engine.h"
#include "kvick/kv_cache.h"
#include "kvick/status.h"

namespace kvick {

struct ContextSize {
  int64_t tokens = 0;  // limit of a sequence
  bool is_capped = false;
};

// The context that memory allows: half of available_bytes for the cache of max_sequences, or
// options.cache_bytes for the cache of one.
// Errors  invalid_argument: an option out of range;  exhausted: not even one block fits
Result<ContextSize> ChooseContext(const ModelInfo& info, const EngineOptions& options,
                                  int64_t available_bytes);

// The same without a cache: half is for the activations of a pass over the whole sequence.
Result<ContextSize> ChooseUncachedContext(const ModelInfo& info, int64_t context_tokens,
                                          int64_t available_bytes);

// The cache for these options, for sequences of up to context_tokens.
KvConfig CacheConfig(const ModelInfo& info, const EngineOptions& options, int64_t context_tokens);

// Bytes of keys and values of one token in all layers; nullopt: of the model's default type.
// Errors: invalid_argument: a type that caches do not support.
Result<int64_t> CacheBytesPerToken(const ModelInfo& info, std::optional<DType> kv_dtype);

// The token budget of a step: batch_tokens, or max_sequences if that is more.
int64_t BatchTokens(const EngineOptions& options);

}  // namespace kvick

#endif  // KVICK_ENGINE_CONTEXT_SIZE_H_
