#include "prove/report.h"

#include <gtest/gtest.h>

#include <string>

namespace kvick {
namespace {

Proof SmallProof() {
  Proof proof;
  proof.model_path = "some model";
  proof.made_by = "some version";
  proof.date = "some day";
  proof.processor = "some processor";
  proof.sections = {{"answers", "Answers", {{"stated", "measured", Verdict::kHolds, "explained"}}}};
  proof.step_times = {{8, 100, 200}, {50, 60, 70}, {500, 6000}, {50, 70, 90}};
  BugTrace& bug = proof.bugs.emplace_back();
  bug.name = "rope";
  bug.num_tokens = 4;
  bug.first_wrong_logits = 0;
  bug.first_wrong_token = 1;
  bug.healthy = {"as ", "it", " was"};
  bug.planted = {"as ", "he", " is"};
  proof.waste = {.num_requests = 8,
                 .context_tokens = 8192,
                 .used_tokens = 1000,
                 .memory_bytes = int64_t{8} << 30,
                 .contiguous = {.reserved_bytes = int64_t{8} << 30, .used_bytes = 1 << 30},
                 .paged = {.reserved_bytes = 1 << 30, .used_bytes = 1 << 30},
                 .contiguous_requests_that_fit = 8,
                 .paged_requests_that_fit = 65};
  return proof;
}

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Report, SaysWhetherTheProofHolds) {
  Proof proof = SmallProof();
  EXPECT_EQ(Count(RenderReport(proof), "The cache changes no answer"), 1u);
  proof.sections[0].claims[0].verdict = Verdict::kFails;
  const std::string html = RenderReport(proof);
  EXPECT_EQ(Count(html, "The cache changes no answer"), 0u);
  EXPECT_EQ(Count(html, "This proof fails"), 1u);
  EXPECT_EQ(Count(html, "<td class=\"fails\">"), 1u);
}

TEST(Report, DrawsEveryLineAndRequestForWideAndForNarrowScreens) {
  const std::string html = RenderReport(SmallProof());
  EXPECT_EQ(Count(html, "<polyline"), 2u * 3);
  EXPECT_EQ(Count(html, "<rect"), 2u * (2 * 2 + 8 + 65));
  EXPECT_EQ(Count(html, "{{"), 0u);
}

TEST(Report, DrawsNothingThatWasNotMeasured) {
  Proof proof = SmallProof();
  proof.step_times = {};
  proof.waste = {};
  const std::string html = RenderReport(proof);
  EXPECT_EQ(Count(html, "<svg"), 0u);
  EXPECT_EQ(Count(html, "nan"), 0u);
}

TEST(Report, MarksTheFirstWrongTokenAndNothingWhereAllAreRight) {
  Proof proof = SmallProof();
  EXPECT_EQ(Count(RenderReport(proof), "<mark>he</mark> is</p>"), 1u);
  proof.bugs[0].first_wrong_token = -1;
  proof.bugs[0].planted = proof.bugs[0].healthy = {"as it was", "", ""};
  EXPECT_EQ(Count(RenderReport(proof), "<mark>"), 0u);
}

TEST(Report, ShowsOneTextWhereABugDidNotChangeIt) {
  Proof proof = SmallProof();
  proof.bugs[0].first_wrong_token = -1;
  proof.bugs[0].planted = proof.bugs[0].healthy = {"as it was", "", ""};
  const std::string html = RenderReport(proof);
  EXPECT_EQ(Count(html, "as it was"), 1u);
  EXPECT_EQ(Count(html, "with and without the bug"), 1u);
}

TEST(Report, SaysWhatMadeItWhenAndOnWhichMachine) {
  const std::string html = RenderReport(SmallProof());
  for (const char* part : {"some version", "some day", "some processor"}) {
    EXPECT_EQ(Count(html, part), 1u) << part;
  }
}

TEST(Report, ExplainsNeighboursOfOneKindOnce) {
  Proof proof = SmallProof();
  proof.sections[0].claims.push_back({"stated too", "measured", Verdict::kNotJudged, "explained"});
  const std::string html = RenderReport(proof);
  EXPECT_EQ(Count(html, "explained</td>"), 1u);
  EXPECT_EQ(Count(html, "<td class=\"unjudged\">not judged</td>"), 1u);
  EXPECT_EQ(Count(html, "The cache changes no answer"), 1u);
}

TEST(Report, NeedsNothingFromElsewhereAndRunsNothing) {
  const std::string html = RenderReport(SmallProof());
  for (const char* part : {"http:", "https:", "<script", "<link", "@import", "url("}) {
    EXPECT_EQ(Count(html, part), 0u) << part;
  }
}

// What a model says, and what a file is called, is text.
TEST(Report, EscapesWhatComesFromOutside) {
  const std::string evil = "<script>alert('&\"')</script>{{MODEL}}";
  Proof proof = SmallProof();
  proof.model_path = proof.injected = proof.made_by = evil;
  proof.bugs[0].prompt = proof.bugs[0].description = evil;
  proof.bugs[0].healthy = proof.bugs[0].planted = {evil, evil, evil};
  proof.sections[0].claims[0].measured = evil;
  const std::string html = RenderReport(proof);
  EXPECT_EQ(Count(html, "<script"), 0u);
  EXPECT_EQ(Count(html, "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"), 13u);
}

}  // namespace
}  // namespace kvick
