// Greedy tokens with the cache and without it: the same tokens, chosen from the same bits.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/same_bits.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kExplanation =
    "The model continues a prompt twice, always with the most likely token: once through the "
    "cache, "
    "once computing the whole text again for every token. If the cache changed an answer, the two "
    "would differ.";

Result<std::unique_ptr<Subject>> CachedOrPlanted(const ProofContext& context) {
  if (context.options.inject) {
    return MakePlantedSubject(context.model, *context.options.inject, context.Subjects());
  }
  KVICK_ASSIGN_OR_RETURN(auto subject, CachedSubject::Create(context.model, context.Subjects()));
  return subject;
}

}  // namespace

Result<ProofSection> ProveAnswers(ProofContext& context) {
  KVICK_ASSIGN_OR_RETURN(const auto cached, CachedOrPlanted(context));
  KVICK_ASSIGN_OR_RETURN(const auto recomputed,
                         RecomputedSubject::Create(context.model, context.Subjects()));
  ProofSection section;
  for (const auto& prompt : context.prompts) {
    KVICK_ASSIGN_OR_RETURN(const GreedyRun with,
                           RunGreedy(*cached, prompt, context.num_tokens, context.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(
        const GreedyRun without,
        RunGreedy(*recomputed, prompt, context.num_tokens, context.vocab_size()));
    const auto mismatch =
        std::mismatch(with.tokens.begin(), with.tokens.end(), without.tokens.begin()).first;
    const auto num_same = mismatch - with.tokens.begin();
    const bool same_tokens = mismatch == with.tokens.end();
    const bool same_bits = SameBits(with.logits, without.logits);
    section.claims.push_back(
        {fmt::format("{} greedy tokens after a prompt of {}: cached = recomputed",
                     context.num_tokens, prompt.size()),
         same_tokens ? fmt::format("{} of {} tokens, {} logits {}", num_same, context.num_tokens,
                                   with.logits.size(), same_bits ? "in the same bits" : "DIFFER")
                     : fmt::format("the texts differ from new token {} on", num_same + 1),
         HoldsIf(same_tokens && same_bits), kExplanation});
  }
  return section;
}

}  // namespace kvick
