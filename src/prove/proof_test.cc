#include "prove/proof.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace kvick {
namespace {

Proof ProofOf(std::initializer_list<Verdict> verdicts) {
  Proof proof;
  ProofSection& section = proof.sections.emplace_back();
  for (const Verdict verdict : verdicts) section.claims.push_back({"stated", "found", verdict, ""});
  return proof;
}

TEST(Proof, OneClaimThatFailsFailsTheProof) {
  using enum Verdict;
  EXPECT_EQ(ProofOf({kHolds, kNotJudged, kFails}).verdict(), kFails);
  EXPECT_EQ(ProofOf({kHolds, kNotJudged}).verdict(), kHolds);
  EXPECT_EQ(ProofOf({kNotJudged}).verdict(), kNotJudged);
  EXPECT_EQ(ProofOf({}).verdict(), kNotJudged);
  EXPECT_EQ(ProofOf({kHolds, kFails}).sections[0].verdict(), kFails);
}

TEST(Proof, CountsWhatWasNotJudgedApart) {
  using enum Verdict;
  EXPECT_EQ(DescribeCount(ProofOf({kHolds, kHolds}).CountClaims()), "2 of 2 claims");
  EXPECT_EQ(DescribeCount(ProofOf({kHolds, kNotJudged, kFails}).CountClaims()),
            "1 of 3 claims, 1 not judged");
}

TEST(Proof, SaysWhereLogitsAndTextBeginToDifferCountedFromOne) {
  BugTrace trace;
  trace.num_tokens = 10;
  EXPECT_EQ(DescribeCaught(trace), "NOT CAUGHT");
  trace.first_wrong_logits = 0;
  EXPECT_EQ(DescribeCaught(trace),
            "caught: the logits differ from new token 1 on, but the 10 tokens do not");
  trace.first_wrong_token = 9;
  EXPECT_EQ(DescribeCaught(trace),
            "caught: the logits differ from new token 1 on, the text from new token 10 on");
  trace.first_wrong_token = 0;
  EXPECT_EQ(DescribeCaught(trace), "caught: logits and text differ from new token 1 on");
}

TEST(Proof, LeavesOutWhatIsNotKnownOfTheMachine) {
  Proof proof;
  proof.numerics = "canonical-1";
  proof.isa = "avx2";
  proof.num_threads = 1;
  EXPECT_EQ(DescribeMachine(proof), "canonical-1 on avx2, 1 thread");
  proof.processor = "Some CPU";
  proof.num_threads = 2;
  proof.read_gbps = 12.34;
  EXPECT_EQ(DescribeMachine(proof), "Some CPU, canonical-1 on avx2, 2 threads, reads 12.3 GB/s");
}

}  // namespace
}  // namespace kvick
