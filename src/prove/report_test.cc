#include "prove/report.h"

#include <gtest/gtest.h>

#include <string>

namespace kvick {
namespace {

Proof SmallProof() {
  Proof proof;
  proof.model_path = "some model";
  proof.sections = {{"answers", "Answers", {{"asked", "measured", true}}}};
  proof.step_times = {{8, 100, 200}, {50, 60, 70}, {500, 6000}, {50, 70, 90}};
  BugTrace& bug = proof.bugs.emplace_back();
  bug.name = "rope";
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
  EXPECT_EQ(Count(RenderReport(proof, "me"), "The cache changes no answer"), 1u);
  proof.sections[0].claims[0].holds = false;
  const std::string html = RenderReport(proof, "me");
  EXPECT_EQ(Count(html, "The cache changes no answer"), 0u);
  EXPECT_EQ(Count(html, "This proof fails"), 1u);
  EXPECT_EQ(Count(html, "<td class=\"fails\">"), 1u);
}

TEST(Report, DrawsEveryLineAndRequestForWideAndForNarrowScreens) {
  const std::string html = RenderReport(SmallProof(), "me");
  EXPECT_EQ(Count(html, "<polyline"), 2u * 3);
  EXPECT_EQ(Count(html, "<rect"), 2u * (2 * 2 + 8 + 65));
  EXPECT_EQ(Count(html, "{{"), 0u);
}

TEST(Report, DrawsNothingThatWasNotMeasured) {
  Proof proof = SmallProof();
  proof.step_times = {};
  proof.waste = {};
  const std::string html = RenderReport(proof, "me");
  EXPECT_EQ(Count(html, "<svg"), 0u);
  EXPECT_EQ(Count(html, "nan"), 0u);
}

TEST(Report, MarksTheFirstWrongTokenAndNothingWhereAllAreRight) {
  Proof proof = SmallProof();
  EXPECT_EQ(Count(RenderReport(proof, "me"), "<mark>he</mark> is</p>"), 1u);
  proof.bugs[0].planted = proof.bugs[0].healthy = {"as it was", "", ""};
  EXPECT_EQ(Count(RenderReport(proof, "me"), "<mark>"), 0u);
}

TEST(Report, NeedsNothingFromElsewhereAndRunsNothing) {
  const std::string html = RenderReport(SmallProof(), "me");
  for (const char* part : {"http:", "https:", "<script", "<link", "@import", "url("}) {
    EXPECT_EQ(Count(html, part), 0u) << part;
  }
}

// What a model says, and what a file is called, is text.
TEST(Report, EscapesWhatComesFromOutside) {
  const std::string evil = "<script>alert('&\"')</script>{{MODEL}}";
  Proof proof = SmallProof();
  proof.model_path = proof.injected = evil;
  proof.bugs[0].prompt = proof.bugs[0].description = evil;
  proof.bugs[0].healthy = proof.bugs[0].planted = {evil, evil, evil};
  proof.sections[0].claims[0].measured = evil;
  const std::string html = RenderReport(proof, evil);
  EXPECT_EQ(Count(html, "<script"), 0u);
  EXPECT_EQ(Count(html, "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"), 13u);
}

}  // namespace
}  // namespace kvick
