#include "engine/context_size.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

constexpr int64_t kMaxSequences = 1 << 16;
constexpr int64_t kMaxTokens = int64_t{1} << 31;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

Status CheckRange(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return Fail(ErrorCode::kInvalidArgument, "engine: {}: expected {} to {}, got {}", name, low, high,
              value);
}

// Bytes of activations for each token of a pass (src/model/forward.h).
int64_t ActivationBytesPerToken(const ModelInfo& m) {
  const int64_t heads = 2 * m.num_heads + 4 * m.num_kv_heads;
  return static_cast<int64_t>(sizeof(float)) *
         (3 * m.hidden_size + heads * m.head_dim + 4 * m.intermediate_size);
}

struct Budget {
  int64_t num_bytes;  // for one sequence
  int64_t token_bytes;
  int64_t granule;  // tokens
};

Result<ContextSize> ChooseWithin(const Budget& budget, int64_t max_tokens) {
  const int64_t fit = budget.num_bytes / budget.token_bytes / budget.granule * budget.granule;
  if (fit >= 1) return ContextSize{std::min(fit, max_tokens), fit < max_tokens};
  return Fail(ErrorCode::kExhausted,
              "engine: expected memory for {} tokens of {} bytes each, got {} bytes a sequence",
              budget.granule, budget.token_bytes, budget.num_bytes);
}

}  // namespace

Result<int64_t> CacheBytesPerToken(const ModelInfo& m, std::optional<DType> kv_dtype) {
  KvConfig one_token = m.KvGeometry(kv_dtype.value_or(m.DefaultKvDType()));
  one_token.block_tokens = 1;
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(one_token));
  return layout.BytesPerToken();
}

int64_t BatchTokens(const EngineOptions& options) {
  return std::max(options.batch_tokens, options.max_sequences);
}

Result<ContextSize> ChooseContext(const ModelInfo& info, const EngineOptions& options,
                                  int64_t available_bytes) {
  KVICK_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, 1, kMaxSequences));
  KVICK_RETURN_IF_ERROR(CheckRange("context_tokens", options.context_tokens, 0, kMaxTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("block_tokens", options.block_tokens, 0, kMaxTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("cache_bytes", options.cache_bytes, 0, kMaxBytes));
  KVICK_RETURN_IF_ERROR(CheckRange("batch_tokens", options.batch_tokens, 1, kMaxTokens));
  if (options.context_tokens > 0) return ContextSize{options.context_tokens, false};
  KVICK_ASSIGN_OR_RETURN(const int64_t token_bytes, CacheBytesPerToken(info, options.kv_dtype));
  const int64_t num_bytes =
      options.cache_bytes > 0 ? options.cache_bytes : available_bytes / 2 / options.max_sequences;
  return ChooseWithin({num_bytes, token_bytes, std::max<int64_t>(1, options.block_tokens)},
                      info.max_positions);
}

Result<ContextSize> ChooseUncachedContext(const ModelInfo& info, int64_t context_tokens,
                                          int64_t available_bytes) {
  KVICK_RETURN_IF_ERROR(CheckRange("context_tokens", context_tokens, 0, kMaxTokens));
  if (context_tokens > 0) return ContextSize{context_tokens, false};
  return ChooseWithin({available_bytes / 2, ActivationBytesPerToken(info), 1}, info.max_positions);
}

KvConfig CacheConfig(const ModelInfo& info, const EngineOptions& options, int64_t context_tokens) {
  KvConfig config = info.KvGeometry(options.kv_dtype.value_or(info.DefaultKvDType()));
  config.fill = options.fill;
  config.max_sequence_tokens = context_tokens;
  config.block_tokens = options.block_tokens > 0 ? options.block_tokens : context_tokens;
  // A cache of default size is seldom filled: its pages are backed on demand.
  const bool is_asked_for = options.context_tokens > 0 || options.cache_bytes > 0;
  config.backing =
      options.backing.value_or(is_asked_for ? KvBacking::kUpFront : KvBacking::kOnDemand);
  if (options.cache_bytes > 0) {
    config.max_bytes = options.cache_bytes;
  } else {
    config.num_blocks = options.max_sequences * CeilDiv(context_tokens, config.block_tokens);
  }
  return config;
}

}  // namespace kvick
