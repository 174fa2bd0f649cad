#include "engine/context_size.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvick {
namespace {

constexpr int64_t kMostSequences = 1 << 16;
constexpr int64_t kMostTokens = int64_t{1} << 31;

Status CheckRange(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return Fail(ErrorCode::kInvalidArgument, "engine: {} is {}, {} to {} is possible", name, value,
              low, high);
}

// Of the cache; without one, of what a pass keeps for each token (src/model/forward.h).
Result<int64_t> BytesPerToken(const ModelInfo& m, const EngineOptions& options) {
  if (options.cache_use == CacheUse::kRecompute) {
    const int64_t heads = 2 * m.num_heads + 4 * m.num_kv_heads;
    return static_cast<int64_t>(sizeof(float)) *
           (3 * m.hidden_size + heads * m.head_dim + 4 * m.intermediate_size);
  }
  KvConfig one_token = m.KvGeometry(options.kv_dtype.value_or(m.DefaultKvDType()));
  one_token.block_tokens = 1;
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(one_token));
  return layout.BytesPerToken();
}

}  // namespace

Result<ContextSize> ChooseContext(const ModelInfo& info, const EngineOptions& options,
                                  int64_t available_bytes) {
  KVICK_RETURN_IF_ERROR(CheckRange("max_sequences", options.max_sequences, 1, kMostSequences));
  KVICK_RETURN_IF_ERROR(CheckRange("context_tokens", options.context_tokens, 0, kMostTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("block_tokens", options.block_tokens, 0, kMostTokens));
  KVICK_RETURN_IF_ERROR(CheckRange("chunk_tokens", options.chunk_tokens, 1, kMostTokens));
  if (options.context_tokens > 0) return ContextSize{options.context_tokens, false};
  KVICK_ASSIGN_OR_RETURN(const int64_t token_bytes, BytesPerToken(info, options));
  const bool is_cached = options.cache_use == CacheUse::kCached;
  const int64_t granule = is_cached ? std::max<int64_t>(1, options.block_tokens) : 1;
  const int64_t budget = available_bytes / 2 / (is_cached ? options.max_sequences : 1);
  const int64_t fit = budget / token_bytes / granule * granule;
  if (fit < 1) {
    return Fail(
        ErrorCode::kExhausted,
        "engine: {} sequences of {} tokens, {} bytes a token, do not fit into half of the {} "
        "bytes available",
        options.max_sequences, granule, token_bytes, available_bytes);
  }
  return ContextSize{std::min(fit, info.max_positions), fit < info.max_positions};
}

KvConfig CacheConfig(const ModelInfo& info, const EngineOptions& options, int64_t context_tokens) {
  KvConfig config = info.KvGeometry(options.kv_dtype.value_or(info.DefaultKvDType()));
  // A context that nobody asked for is seldom filled: pages are backed as they are written to.
  if (options.context_tokens == 0) config.backing = KvBacking::kOnDemand;
  if (options.block_tokens == 0) return config.Contiguous(options.max_sequences, context_tokens);
  config.block_tokens = options.block_tokens;
  config.num_blocks = options.max_sequences * CeilDiv(context_tokens, options.block_tokens);
  config.max_sequence_tokens = context_tokens;
  return config;
}

}  // namespace kvick
