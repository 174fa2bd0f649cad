// Fixed addresses, as graph capture needs them, and no allocation in a step.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kAddressExplanation =
    "The addresses of keys and values are compared after every token. Graph capture and compiled "
    "steps record addresses, so a cache that moves its memory breaks them.";
constexpr std::string_view kAllocationExplanation =
    "All heap allocations of the process are counted during the steps. An allocation costs time, "
    "and "
    "it can fail in the middle of a text.";

}  // namespace

Result<ProofSection> ProveStability(ProofContext& context) {
  KVICK_ASSIGN_OR_RETURN(const auto subject,
                         CachedSubject::Create(context.model, context.Subjects()));
  KvCache& cache = subject->cache();
  std::vector<float> logits(static_cast<size_t>(context.vocab_size()));
  const std::byte* const keys = cache.k(0).data;
  KVICK_RETURN_IF_ERROR(subject->Begin());
  KVICK_RETURN_IF_ERROR(subject->Feed(context.prompts[0], logits));
  const std::byte* const first_key = cache.View(subject->sequence())->Key(0, 0, 0);
  const int32_t token = context.prompts[0].back();
  KVICK_RETURN_IF_ERROR(subject->Feed({&token, 1}, logits));  // the threads start now
  const auto num_allocations = context.options.num_allocations;
  const int64_t before = num_allocations != nullptr ? num_allocations() : 0;
  const int64_t num_steps = std::max<int64_t>(1, context.num_tokens - 1);
  for (int64_t i = 0; i < num_steps; ++i) {
    KVICK_RETURN_IF_ERROR(subject->Feed({&token, 1}, logits));
  }
  const int64_t num_made = num_allocations != nullptr ? num_allocations() - before : 0;
  const bool same_addresses =
      cache.k(0).data == keys && cache.View(subject->sequence())->Key(0, 0, 0) == first_key;
  ProofSection section;
  section.claims.push_back({fmt::format("addresses over {} steps do not change", num_steps),
                            same_addresses ? "unchanged" : "CHANGED", HoldsIf(same_addresses),
                            kAddressExplanation});
  if (num_allocations != nullptr) {
    section.claims.push_back({fmt::format("{} decode steps allocate nothing", num_steps),
                              fmt::format("{} heap allocations", num_made), HoldsIf(num_made == 0),
                              kAllocationExplanation});
  }
  return section;
}

}  // namespace kvick
