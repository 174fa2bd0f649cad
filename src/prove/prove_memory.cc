// The bytes of a cache: by the formula, by the cache, and by the operating system.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/memory.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kTokenExplanation =
    "The size of a cached token follows from the geometry of the model: 2 (key and value) x layers "
    "x "
    "KV heads x head_dim x bytes per number. The cache must take exactly this.";
constexpr std::string_view kRequestExplanation =
    "A cache is filled, and the operating system is asked how much memory the process uses before "
    "and "
    "after. What the cache reports must be what it takes.";

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t Formula(const KvConfig& c, int64_t num_tokens) {
  return 2 * c.num_layers * c.num_kv_heads * c.head_dim * num_tokens * DTypeBytes(c.dtype);
}

// The bytes of one token: by the formula, and by the cache.
Result<Claim> TokenClaim(const char* name, const KvConfig& config) {
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(config));
  const int64_t formula = Formula(config, 1);
  return Claim{fmt::format("{}: {} bytes per token", name, formula),
               fmt::format("the cache uses {}", layout.BytesPerToken()),
               HoldsIf(layout.BytesPerToken() == formula), kTokenExplanation};
}

std::string RequestStatement(const char* name, int64_t formula, int64_t num_tokens) {
  return fmt::format("{}: {} tokens take {} ({} bytes)", name, num_tokens, ByteText(formula),
                     formula);
}

// The bytes of one request of `num_tokens`: allocated, written, and compared with what the system
// says.
Result<Claim> RequestClaim(const char* name, const KvConfig& config, int64_t num_tokens) {
  const int64_t formula = Formula(config, num_tokens);
  const int64_t available = AvailableMemoryBytes();
  if (formula > available) {
    return Fail(ErrorCode::kExhausted, "this machine has {} of free memory, expected at least {}",
                ByteText(available), ByteText(formula));
  }
  KVICK_ASSIGN_OR_RETURN(const auto cache, KvCache::Create(config));
  const int64_t before = ResidentBytes();
  KVICK_RETURN_IF_ERROR(AppendOnes(*cache, cache->CreateSequence(), num_tokens));
  const int64_t grown = ResidentBytes() - before;
  const KvUsage usage = cache->Usage();
  // Pages are whole, huge ones too; other memory of the process may come and go meanwhile.
  const int64_t tolerance = 2 * kHugePageBytes + formula / 50;
  return Claim{
      RequestStatement(name, formula, num_tokens),
      fmt::format("the cache reports {} used and {} empty; the process has grown by {}",
                  ByteText(usage.used_bytes), ByteText(usage.empty_bytes), ByteText(grown)),
      HoldsIf(usage.used_bytes == formula && usage.empty_bytes == 0 &&
              std::abs(grown - formula) <= tolerance),
      kRequestExplanation};
}

// A cache of one request, of which only what is written becomes resident.
struct MeasuredCache {
  const char* name;
  KvConfig config;
  int64_t num_tokens;
};

MeasuredCache CacheOf(const char* name, const KvConfig& geometry, int64_t num_tokens) {
  KvConfig config = geometry.Contiguous(1, num_tokens);
  config.backing = KvBacking::kOnDemand;
  return {name, config, num_tokens};
}

}  // namespace

Result<ProofSection> ProveMemory(ProofContext& context) {
  constexpr int64_t kTokens = 8192;
  const ModelInfo& info = context.model.info();
  const MeasuredCache caches[] = {CacheOf("this model", info.KvGeometry(info.DefaultKvDType()),
                                          std::min(info.max_positions, kTokens)),
                                  CacheOf("Llama 3 8B", Llama3_8BGeometry(), kTokens)};
  ProofSection section;
  for (const auto& [name, config, num_tokens] : caches) {
    KVICK_ASSIGN_OR_RETURN(Claim claim, TokenClaim(name, config));
    section.claims.push_back(std::move(claim));
  }
  for (const auto& [name, config, num_tokens] : caches) {
    std::string statement = RequestStatement(name, Formula(config, num_tokens), num_tokens);
    KVICK_ASSIGN_OR_RETURN(
        Claim claim,
        JudgeIfMemorySuffices(std::move(statement), RequestClaim(name, config, num_tokens)));
    section.claims.push_back(std::move(claim));
  }
  return section;
}

}  // namespace kvick
