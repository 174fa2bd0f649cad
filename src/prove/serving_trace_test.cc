#include "prove/serving_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/hash_of_bits_testing.h"
#include "prove/serving_run.h"

namespace kvick {
namespace {

TEST(MakeTrace, HasTheMeansThatWereAskedFor) {
  TraceOptions options;
  options.num_requests = 20000;
  options.max_tokens = 1 << 30;
  const auto trace = MakeTrace(options).value();
  ASSERT_EQ(trace.size(), 20000u);
  double tokens = 0, output = 0;
  for (const TracedRequest& request : trace) {
    tokens += static_cast<double>(request.prompt_tokens + request.output_tokens);
    output += static_cast<double>(request.output_tokens);
    EXPECT_GE(request.prompt_tokens, 1);
    EXPECT_GE(request.output_tokens, 1);
    EXPECT_NEAR(static_cast<double>(request.prefix_tokens),
                static_cast<double>(request.prompt_tokens) / 2, 0.51);
  }
  EXPECT_NEAR(tokens / 20000, 1000, 20);
  EXPECT_NEAR(output / tokens, 0.25, 0.01);
  EXPECT_NEAR(static_cast<double>(trace.back().arrival_us) / 20000, 1e4, 200);
  EXPECT_TRUE(std::ranges::is_sorted(trace, {}, &TracedRequest::arrival_us));
}

TEST(MakeTrace, CutsAtTheMostTokensAndRefusesWhatCannotBe) {
  TraceOptions options;
  options.max_tokens = 700;
  const auto trace = MakeTrace(options).value();
  for (const TracedRequest& request : trace) {
    EXPECT_LE(request.prompt_tokens + request.output_tokens, 700);
  }
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    options.shared_prefix = bad;
    EXPECT_EQ(MakeTrace(options).error().code, ErrorCode::kInvalidArgument);
  }
}

// No length and no arrival comes from a library's log, exp or cos.
TEST(MakeTrace, IsTheRecordedOne) {
  TraceOptions options;
  options.num_requests = 10'000;
  const auto trace = MakeTrace(options).value();
  std::vector<double> numbers;
  for (const TracedRequest& request : trace) {
    numbers.push_back(static_cast<double>(request.arrival_us));
    numbers.push_back(static_cast<double>(request.prompt_tokens));
    numbers.push_back(static_cast<double>(request.output_tokens));
    numbers.push_back(static_cast<double>(request.prefix_id));
  }
  EXPECT_EQ(testing::HashOfBits(numbers), 16597001780185613121u);
}

TEST(RequestOf, BeginsLikeThoseOfTheSamePrefixAndLikeNoOther) {
  const TracedRequest traced{0, 100, 5, 3, 60};
  TracedRequest other = traced;
  other.prefix_id = 4;
  const auto a = RequestOf(traced, 1, 1 << 20).prompt;
  const auto b = RequestOf(traced, 2, 1 << 20).prompt;
  const auto c = RequestOf(other, 3, 1 << 20).prompt;
  ASSERT_EQ(a.size(), 100u);
  EXPECT_EQ(std::ranges::mismatch(a, b).in1 - a.begin(), 60);
  EXPECT_NE(a[0], c[0]);
  EXPECT_EQ(a, RequestOf(traced, 1, 1 << 20).prompt);
}

TEST(ParseTrace, TakesLinesInOrderOfArrival) {
  const auto trace = ParseTrace(
                         "{\"arrival_ms\": 2.5, \"prompt_tokens\": 10, \"output_tokens\": 3}\n\n"
                         "{\"arrival_ms\": 0, \"prompt_tokens\": 8, \"output_tokens\": 1, "
                         "\"prefix_id\": 7}\r\n"
                         "{\"arrival_ms\": 1, \"prompt_tokens\": 8, \"output_tokens\": 1, "
                         "\"prefix_id\": 7, \"prefix_tokens\": 99}",
                         {})
                         .value();
  ASSERT_EQ(trace.size(), 3u);
  EXPECT_EQ(trace[0].prefix_id, 7);
  EXPECT_EQ(trace[0].prefix_tokens, 4);
  EXPECT_EQ(trace[1].prefix_tokens, 8);
  EXPECT_EQ(trace[2].arrival_us, 2500);
  EXPECT_EQ(trace[2].prefix_id, -1);
}

TEST(ParseTrace, SaysWhichLineIsWrong) {
  const std::string good = "{\"arrival_ms\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1}\n";
  for (const char* bad :
       {"7", "{", "{}", "{\"arrival_ms\": 0, \"prompt_tokens\": 0, \"output_tokens\": 1}",
        "{\"arrival_ms\": -1, \"prompt_tokens\": 1, \"output_tokens\": 1}",
        "{\"arrival_ms\": 0, \"prompt_tokens\": 9000, \"output_tokens\": 1}",
        "{\"arrival_ms\": 0, \"prompt_tokens\": 9, \"output_tokens\": 1, \"prefix_tokens\": 3}",
        "{\"arrival_ms\": 0, \"prompt_tokens\": 1e99, \"output_tokens\": 1}",
        "{\"arrival_ms\": 0, \"prompt_tokens\": \"1\", \"output_tokens\": 1}"}) {
    const auto trace = ParseTrace(good + bad, {});
    ASSERT_FALSE(trace.has_value()) << bad;
    EXPECT_NE(trace.error().message.find("line 2"), std::string::npos) << trace.error().message;
  }
  EXPECT_FALSE(ParseTrace("\n \n", {}).has_value());
}

TEST(Percentiles, AreOfTheNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = Percentiles::Of(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(Percentiles::Of({7}).p99, 7);
  EXPECT_EQ(Percentiles::Of({}).p50, 0);
}

}  // namespace
}  // namespace kvick
