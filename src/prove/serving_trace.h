#ifndef KVICK_PROVE_SERVING_TRACE_H_
#define KVICK_PROVE_SERVING_TRACE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kvick/engine.h"
#include "kvick/status.h"

namespace kvick {

// A request as load tests know it: when it comes, how long it is, with whom it begins.
struct TracedRequest {
  int64_t arrival_us = 0;
  int64_t prompt_tokens = 1;
  int64_t output_tokens = 1;
  int64_t prefix_id = -1;     // requests of equal ids begin alike; -1: with nobody
  int64_t prefix_tokens = 0;  // how much of the prompt that is
};

struct TraceOptions {
  int64_t num_requests = 200;
  double mean_tokens = 1000;      // prompt and output
  double length_deviation = 0.8;  // of the logarithm of the length
  double output_share = 0.25;     // of a request's tokens
  double shared_prefix = 0.5;     // of a prompt: begins like those of the same prefix_id
  int64_t num_prefixes = 8;
  double requests_per_second = 100;
  int64_t max_tokens = 8192;  // of a request: longer ones are cut to this
  uint64_t seed = 1;
};

// Lognormal lengths and Poisson arrivals. The same options give the same trace on any machine.
// Errors: invalid_argument: an option out of range.
Result<std::vector<TracedRequest>> MakeTrace(const TraceOptions& options);

// One JSON object a line: arrival_ms, prompt_tokens, output_tokens, and where there is one
// prefix_id with the first options.shared_prefix of the prompt, or its prefix_tokens, in common.
// Of the options the others but max_tokens are not read.
// Errors: invalid_argument, with the line's number.
Result<std::vector<TracedRequest>> ParseTrace(std::string_view lines, const TraceOptions& options);

// The request that a line of a trace stands for: random tokens of 0 .. vocab_size - 1.
GenerateRequest RequestOf(const TracedRequest& traced, int64_t request_idx, int64_t vocab_size);

}  // namespace kvick

#endif  // KVICK_PROVE_SERVING_TRACE_H_
