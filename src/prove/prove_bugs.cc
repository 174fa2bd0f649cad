// Each of the four classic bugs, planted: the comparison with recomputing must see it.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/same_bits.h"
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

// The text of new tokens, cut around token `parting`; -1: not cut.
PartedText CutAround(const Model& model, std::span<const int32_t> tokens, int64_t parting) {
  const int64_t num_same = parting < 0 ? std::ssize(tokens) : parting;
  PartedText text;
  TextStream stream(model);
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    // A character that is not whole yet shows with a later token.
    std::string& part = i < num_same ? text.same : text.token.empty() ? text.token : text.rest;
    part += stream.Append(tokens[static_cast<size_t>(i)]);
  }
  (num_same == std::ssize(tokens) ? text.same : text.rest) += stream.Finish();
  return text;
}

// Where the new tokens of two runs part, and what was said until then.
BugTrace Compare(const Model& model, PlantedBug bug, const GreedyRun& healthy,
                 const GreedyRun& planted) {
  BugTrace trace;
  trace.name = PlantedBugName(bug);
  trace.description = PlantedBugDescription(bug);
  trace.first_wrong_logits = FirstWrongLogits(healthy, planted);
  const auto parting = std::ranges::mismatch(healthy.tokens, planted.tokens).in1;
  if (parting != healthy.tokens.end()) trace.first_wrong_token = parting - healthy.tokens.begin();
  trace.healthy = CutAround(model, healthy.tokens, trace.first_wrong_token);
  trace.planted = CutAround(model, planted.tokens, trace.first_wrong_token);
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
  ProofSection section;
  for (const PlantedBug bug : kPlantedBugs) {
    KVICK_ASSIGN_OR_RETURN(const auto subject,
                           MakePlantedSubject(context.model, bug, context.Subjects()));
    KVICK_RETURN_IF_ERROR(
        RunGreedy(*subject, context.prompts[1], context.num_tokens, context.vocab_size()));
    KVICK_ASSIGN_OR_RETURN(
        const GreedyRun planted,
        RunGreedy(*subject, context.prompts[0], context.num_tokens, context.vocab_size()));
    BugTrace trace = Compare(context.model, bug, healthy, planted);
    trace.prompt = CutAround(context.model, context.prompts[0], -1).Whole();
    section.claims.push_back({fmt::format("{}: {}", trace.name, trace.description),
                              Caught(trace, healthy.tokens.size()), trace.first_wrong_logits >= 0});
    context.proof.bugs.push_back(trace);
  }
  return section;
}

}  // namespace kvick
