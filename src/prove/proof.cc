#include "prove/proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvick {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "fails";
    case Verdict::kNotJudged:
      break;
  }
  return "not judged";
}

Verdict Combine(std::span<const Claim> claims) {
  const auto any = [&](Verdict verdict) {
    return std::ranges::count(claims, verdict, &Claim::verdict) > 0;
  };
  if (any(Verdict::kFails)) return Verdict::kFails;
  return any(Verdict::kHolds) ? Verdict::kHolds : Verdict::kNotJudged;
}

Verdict ProofSection::verdict() const { return Combine(claims); }

std::string DescribeCaught(const BugTrace& trace) {
  if (trace.first_wrong_logits < 0) return "NOT CAUGHT";
  const int64_t logits = trace.first_wrong_logits + 1;
  if (trace.first_wrong_token < 0) {
    return fmt::format("caught: the logits differ from new token {} on, but the {} tokens do not",
                       logits, trace.num_tokens);
  }
  const int64_t token = trace.first_wrong_token + 1;
  if (token == logits)
    return fmt::format("caught: logits and text differ from new token {} on", token);
  return fmt::format(
      "caught: the logits differ from new token {} on, the text from new token {} on", logits,
      token);
}

Proof::Count Proof::CountClaims() const {
  Count count;
  for (const ProofSection& section : sections) {
    count.held += std::ranges::count(section.claims, Verdict::kHolds, &Claim::verdict);
    count.failed += std::ranges::count(section.claims, Verdict::kFails, &Claim::verdict);
    count.not_judged += std::ranges::count(section.claims, Verdict::kNotJudged, &Claim::verdict);
  }
  return count;
}

Verdict Proof::verdict() const {
  const Count count = CountClaims();
  if (count.failed > 0) return Verdict::kFails;
  return count.held > 0 ? Verdict::kHolds : Verdict::kNotJudged;
}

std::string DescribeMachine(const Proof& proof) {
  std::string text = proof.processor.empty() ? "" : proof.processor + ", ";
  text += fmt::format("{} on {}, {} thread{}", proof.numerics, proof.isa, proof.num_threads,
                      proof.num_threads == 1 ? "" : "s");
  if (proof.read_gbps > 0) text += fmt::format(", reads {:.1f} GB/s", proof.read_gbps);
  return text;
}

std::string DescribeLogits(const Proof& proof) {
  return fmt::format("{} (SHA-256 of the logits of {} fixed tokens in {})", proof.logits.sha256,
                     proof.logits.num_tokens, proof.numerics);
}

std::string DescribeCount(const Proof::Count& count) {
  const std::string text = fmt::format("{} of {} claims", count.held, count.all());
  return count.not_judged == 0 ? text : fmt::format("{}, {} not judged", text, count.not_judged);
}

}  // namespace kvick
