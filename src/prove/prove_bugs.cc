// Each of the four classic bugs is planted; the comparison with recomputing must notice it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/same_bits.h"
#include "prove/sections.h"

namespace kvick {
namespace {

constexpr std::string_view kExplanation =
    "Each of the four classic bugs of a KV cache is planted on purpose, and the same comparison as "
    "above is made. It must notice the bug: otherwise the other claims would prove nothing.";

// The first new token whose logits differ, or -1.
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

// The text of new tokens, split around token `mismatch`; -1: not split.
SplitText SplitAround(const Model& model, std::span<const int32_t> tokens, int64_t mismatch) {
  const int64_t num_same = mismatch < 0 ? std::ssize(tokens) : mismatch;
  SplitText text;
  TextStream stream(model);
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    // A character that is still incomplete appears with a later token.
    std::string& part = i < num_same ? text.same : text.token.empty() ? text.token : text.rest;
    part += stream.Append(tokens[static_cast<size_t>(i)]);
  }
  (num_same == std::ssize(tokens) ? text.same : text.rest) += stream.Finish();
  return text;
}

// Where the new tokens of two runs differ, and their texts.
BugTrace Compare(const Model& model, PlantedBug bug, const GreedyRun& healthy,
                 const GreedyRun& planted) {
  BugTrace trace;
  trace.name = PlantedBugName(bug);
  trace.description = PlantedBugDescription(bug);
  trace.num_tokens = std::ssize(healthy.tokens);
  trace.first_wrong_logits = FirstWrongLogits(healthy, planted);
  const auto mismatch = std::ranges::mismatch(healthy.tokens, planted.tokens).in1;
  if (mismatch != healthy.tokens.end()) trace.first_wrong_token = mismatch - healthy.tokens.begin();
  trace.healthy = SplitAround(model, healthy.tokens, trace.first_wrong_token);
  trace.planted = SplitAround(model, planted.tokens, trace.first_wrong_token);
  return trace;
}

}  // namespace

Result<ProofSection> ProveBugsAreCaught(ProofContext& context) {
  KVICK_ASSIGN_OR_RETURN(const auto recomputed,
                         RecomputedSubject::Create(context.model, context.Subjects()));
  // Each bug sees this as its second text. The first leaves rows behind that a missing reset reads.
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
    trace.prompt = SplitAround(context.model, context.prompts[0], -1).Whole();
    section.claims.push_back({fmt::format("{}: {}", trace.name, trace.description),
                              DescribeCaught(trace), HoldsIf(trace.first_wrong_logits >= 0),
                              kExplanation});
    context.proof.bugs.push_back(std::move(trace));
  }
  return section;
}

}  // namespace kvick
