// Each of the four classic bugs, planted: the comparison with recomputing must see it.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "prove/sections.h"

namespace kvick {
namespace {

// The first new token that was chosen from other bits, or -1.
int64_t FirstWrongLogits(const GreedyRun& healthy, const GreedyRun& planted) {
  const size_t width = healthy.logits.size() / healthy.tokens.size();
  for (size_t i = 0; i < healthy.tokens.size(); ++i) {
    const auto row = [&](const GreedyRun& run) {
      return std::span<const float>(run.logits).subspan(i * width, width);
    };
    if (!SameBits(row(healthy), row(planted))) return static_cast<int64_t>(i);
  }
  return -1;
}

std::string Caught(const BugTrace& trace, size_t num_tokens) {
  if (trace.first_wrong_logits < 0) return "NOT CAUGHT";
  if (trace.first_wrong_token < 0) {
    return fmt::format("caught: other logits from new token {} on, though the same {} tokens",
                       trace.first_wrong_logits, num_tokens);
  }
  return fmt::format("caught: other logits from new token {} on, the text parts at {}",
                     trace.first_wrong_logits, trace.first_wrong_token);
}

// Where the new tokens of two runs part, and what was said until then.
BugTrace Compare(const ProofContext& context, PlantedBug bug, const GreedyRun& healthy,
                 const GreedyRun& planted) {
  BugTrace trace;
  trace.name = PlantedBugName(bug);
  trace.description = PlantedBugDescription(bug);
  trace.healthy_text = context.TextOf(healthy.tokens);
  trace.planted_text = context.TextOf(planted.tokens);
  trace.first_wrong_logits = FirstWrongLogits(healthy, planted);
  const auto parting =
      std::mismatch(healthy.tokens.begin(), healthy.tokens.end(), planted.tokens.begin());
  if (parting.first == healthy.tokens.end()) return trace;
  trace.first_wrong_token = parting.first - healthy.tokens.begin();
  trace.first_wrong_byte = std::mismatch(trace.healthy_text.begin(), trace.healthy_text.end(),
                                         trace.planted_text.begin(), trace.planted_text.end())
                               .first -
                           trace.healthy_text.begin();
  return trace;
}

}  // namespace

Result<ProofSection> ProveBugsAreCaught(ProofContext& context) {
  KVICK_ASSIGN_OR_RETURN(const auto recomputed,
                         RecomputedSubject::Create(context.model, context.Subjects()));
  // The second text: the first leaves behind what a missing reset would read.
  KVICK_ASSIGN_OR_RETURN(
      const GreedyRun healthy,
      RunGreedy(*recomputed, context.prompts[0], context.num_tokens, context.vocab_size()));
  ProofSection section{"bugs", {}, {}};
  for (const PlantedBug bug : kPlantedBugs) {
    KVICK_ASSIGN_OR_RETURN(const auto subject,
                           MakePlantedSubject(context.model, bug, context.Subjects()));
    KVICK_RETURN_IF_ERROR(
        RunGreedy(*subject, context.prompts[1], context.num_tokens, context.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(
        const GreedyRun planted,
        RunGreedy(*subject, context.prompts[0], context.num_tokens, context.vocab_size()));
    const BugTrace trace = Compare(context, bug, healthy, planted);
    section.claims.push_back({fmt::format("{}: {}", trace.name, trace.description),
                              Caught(trace, healthy.tokens.size()), trace.first_wrong_logits >= 0});
    context.proof.bugs.push_back(trace);
  }
  return section;
}

}  // namespace kvick
