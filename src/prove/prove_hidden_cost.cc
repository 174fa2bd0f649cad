// Memory that is reserved and not used, contiguous and paged: eight requests of Llama 3 8B.

#include <fmt/format.h>

#include <utility>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kUsageExplanation =
    "Eight requests of 1,000 tokens are written into a cache for eight contexts of 8,192 tokens of "
    "Llama 3 8B. A contiguous cache reserves the whole context of each request; a paged cache "
    "reserves "
    "only the blocks that hold tokens.";
constexpr std::string_view kFitExplanation =
    "Requests of 1,000 tokens are admitted into the same memory until the cache refuses one. What "
    "is "
    "not reserved in vain can serve other requests.";

constexpr int64_t kNumRequests = 8, kContextTokens = 8192, kUsedTokens = 1000, kBlockTokens = 16;

KvConfig PagedConfig() {
  KvConfig config = Llama3_8BGeometry();
  config.block_tokens = kBlockTokens;
  config.num_blocks = kNumRequests * kContextTokens / kBlockTokens;
  return config;
}

// Pages are backed when they are written: 1 GiB of the 8 GiB.
Result<std::unique_ptr<KvCache>> MakeCache(KvConfig config) {
  config.backing = KvBacking::kOnDemand;
  return KvCache::Create(config);
}

Result<KvUsage> UsageOfRequests(const KvConfig& config) {
  KVICK_ASSIGN_OR_RETURN(const auto cache, MakeCache(config));
  const int64_t written = kNumRequests * kUsedTokens * cache->layout().BytesPerToken();
  const int64_t available = AvailableMemoryBytes();
  if (written > available) {
    return Fail(ErrorCode::kExhausted, "this machine has {} of free memory, expected at least {}",
                ByteText(available), ByteText(written));
  }
  for (int64_t i = 0; i < kNumRequests; ++i) {
    KVICK_RETURN_IF_ERROR(AppendOnes(*cache, cache->CreateSequence(), kUsedTokens));
  }
  return cache->Usage();
}

// Admits requests of that length until the cache refuses one.
Result<int64_t> CountAdmitted(const KvConfig& config) {
  KVICK_ASSIGN_OR_RETURN(const auto cache, MakeCache(config));
  std::vector<WritePlan> admitted;
  while (true) {
    auto plan = cache->Reserve(cache->CreateSequence(), kUsedTokens);
    if (plan) {
      admitted.push_back(*std::move(plan));
    } else if (plan.error().code == ErrorCode::kExhausted) {
      return static_cast<int64_t>(admitted.size());
    } else {
      return tl::unexpected<Error>(std::move(plan).error());
    }
  }
}

Claim UsageClaim(const char* name, const KvUsage& usage, int64_t reserved, int64_t used) {
  const double empty_share =
      static_cast<double>(usage.empty_bytes) / static_cast<double>(usage.reserved_bytes);
  return {fmt::format("{}: {} requests of {} tokens reserve {} and use {}", name, kNumRequests,
                      kUsedTokens, ByteText(reserved), ByteText(used)),
          fmt::format("reserved {} bytes, used {}, empty {} ({:.1f} %)", usage.reserved_bytes,
                      usage.used_bytes, usage.empty_bytes, 100 * empty_share),
          HoldsIf(usage.reserved_bytes == reserved && usage.used_bytes == used &&
                  usage.empty_bytes == reserved - used),
          kUsageExplanation};
}

}  // namespace

Result<ProofSection> ProveHiddenCost(ProofContext& context) {
  const KvConfig contiguous = Llama3_8BGeometry().Contiguous(kNumRequests, kContextTokens);
  const KvConfig paged = PagedConfig();
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(paged));
  const int64_t token_bytes = layout.BytesPerToken();
  WasteFigures waste;
  waste.num_requests = kNumRequests;
  waste.context_tokens = kContextTokens;
  waste.used_tokens = kUsedTokens;
  waste.memory_bytes = kNumRequests * kContextTokens * token_bytes;
  KVICK_ASSIGN_OR_RETURN(waste.contiguous, UsageOfRequests(contiguous));
  KVICK_ASSIGN_OR_RETURN(waste.paged, UsageOfRequests(paged));
  KVICK_ASSIGN_OR_RETURN(waste.contiguous_requests_that_fit, CountAdmitted(contiguous));
  KVICK_ASSIGN_OR_RETURN(waste.paged_requests_that_fit, CountAdmitted(paged));

  context.proof.waste = waste;

  const int64_t used = kNumRequests * kUsedTokens * token_bytes;
  const int64_t request_blocks = CeilDiv(kUsedTokens, kBlockTokens);
  const int64_t expected_fit = paged.num_blocks / request_blocks;
  return ProofSection{
      {},
      {},
      {UsageClaim("contiguous", waste.contiguous, waste.memory_bytes, used),
       UsageClaim("paged", waste.paged, kNumRequests * request_blocks * layout.block_stride, used),
       {fmt::format("{} holds {} requests of {} tokens contiguous, {} paged",
                    ByteText(waste.memory_bytes), kNumRequests, kUsedTokens, expected_fit),
        fmt::format("admitted {} and {}", waste.contiguous_requests_that_fit,
                    waste.paged_requests_that_fit),
        HoldsIf(waste.contiguous_requests_that_fit == kNumRequests &&
                waste.paged_requests_that_fit == expected_fit),
        kFitExplanation}}};
}

}  // namespace kvick
