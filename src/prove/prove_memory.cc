// Bytes three times: by the formula, by the cache, and by the operating system.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/check.h"
#include "base/memory.h"
#include "prove/sections.h"

namespace kvick {
namespace {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t Formula(const KvConfig& c, int64_t num_tokens) {
  return 2 * c.num_layers * c.num_kv_heads * c.head_dim * num_tokens * DTypeBytes(c.dtype);
}

// One request of `num_tokens`, allocated and written.
Status AddRequest(const char* name, const KvConfig& geometry, int64_t num_tokens,
                  ProofSection& section) {
  KvConfig config = geometry.Contiguous(1, num_tokens);
  config.backing = KvBacking::kOnDemand;  // so that what becomes resident is what is written
  const int64_t formula = Formula(config, num_tokens);
  if (formula > AvailableMemoryBytes()) {
    section.claims.push_back({fmt::format("{}: {} bytes for {} tokens", name, formula, num_tokens),
                              fmt::format("only {} bytes are available", AvailableMemoryBytes()),
                              false});
    return {};
  }
  KVICK_ASSIGN_OR_RETURN(const auto cache, KvCache::Create(config));
  section.claims.push_back({fmt::format("{}: {} bytes a token", name, Formula(config, 1)),
                            fmt::format("the cache says {}", cache->layout().BytesPerToken()),
                            cache->layout().BytesPerToken() == Formula(config, 1)});
  const int64_t before = ResidentBytes();
  KVICK_RETURN_IF_ERROR(AppendOnes(*cache, cache->CreateSequence(), num_tokens));
  const int64_t grown = ResidentBytes() - before;
  const KvUsage usage = cache->Usage();
  // Pages are whole, huge ones too; other memory of the process may come and go meanwhile.
  const int64_t tolerance = 2 * kHugePageBytes + formula / 50;
  section.claims.push_back(
      {fmt::format("{}: {} bytes for {} tokens", name, formula, num_tokens),
       fmt::format("the cache says {} used, {} empty; the system, {} more resident",
                   usage.used_bytes, usage.empty_bytes, grown),
       usage.used_bytes == formula && usage.empty_bytes == 0 &&
           std::abs(grown - formula) <= tolerance});
  return {};
}

}  // namespace

Result<ProofSection> ProveMemory(ProofContext& context) {
  ProofSection section;
  const ModelInfo& info = context.model.info();
  const int64_t num_tokens = std::min<int64_t>(info.max_positions, 8192);
  KVICK_RETURN_IF_ERROR(
      AddRequest("this model", info.KvGeometry(info.DefaultKvDType()), num_tokens, section));
  KVICK_RETURN_IF_ERROR(AddRequest("Llama 3 8B", Llama3_8BGeometry(), 8192, section));
  return section;
}

}  // namespace kvick
