#ifndef KVICK_PROVE_SERVING_TRACE_H_
#define KVICK_PROVE_SERVING_TRACE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick {

// A request of a load test: its arrival, its length, and the prefix that it shares.
struct TracedRequest {
  int64_t arrival_us = 0;
  int64_t prompt_tokens = 1;
  int64_t output_tokens = 1;
  int64_t prefix_id = -1;     // requests with the same id share a prefix; -1: none
  int64_t prefix_tokens = 0;  // length of the shared prefix
};

struct TraceOptions {
  int64_t num_requests = 200;
  double mean_tokens = 1000;      // of prompt and output together
  double length_deviation = 0.8;  // standard deviation of the logarithm of the length
  double output_share = 0.25;     // share of a request's tokens
  double shared_prefix = 0.5;     // share of a prompt that is the shared prefix
  int64_t num_prefixes = 8;
  double requests_per_second = 100;
  int64_t max_tokens = 8192;  // per request; longer ones are shortened to this
  uint64_t seed = 1;
};

// Lognormal lengths and Poisson arrivals. The same options give the same trace on any machine.
// Errors: invalid_argument: an option out of range.
Result<std::vector<TracedRequest>> MakeTrace(const TraceOptions& options);

// One JSON object per line: arrival_ms, prompt_tokens, output_tokens and, optionally, prefix_id and
// prefix_tokens. Without prefix_tokens, the shared prefix is options.shared_prefix of the prompt.
// The only other option that is used is max_tokens. Errors: invalid_argument, with the number of
// the line.
Result<std::vector<TracedRequest>> ParseTrace(std::string_view lines, const TraceOptions& options);

// The request of a line of a trace: random tokens in [0, vocab_size).
GenerateRequest RequestOf(const TracedRequest& traced, int64_t request_idx, int64_t vocab_size);

}  // namespace kvick

#endif  // KVICK_PROVE_SERVING_TRACE_H_
