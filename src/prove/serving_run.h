#ifndef KVICK_PROVE_SERVING_RUN_H_
#define KVICK_PROVE_SERVING_RUN_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kvick/engine.h"
#include "kvick/model.h"
#include "kvick/status.h"
#include "prove/serving_trace.h"

namespace kvick {

// The middle and the ends of many times, by the nearest rank.
struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;

  static Percentiles Of(std::vector<double> values);
};

// What an engine did with a trace.
struct ServingFigures {
  double seconds = 0;  // from the first arrival to the last end
  int64_t num_requests = 0;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  Percentiles first_token_ms;     // from arrival
  Percentiles between_tokens_ms;  // of one text
  // Means over the time in which requests waited, or where none ever did, in which any ran.
  double in_flight = 0;  // texts that hold blocks
  double pool_use = 0;   // reserved of all bytes
  double waste = 0;      // empty of reserved bytes
  double overhead = 0;   // of a step's time: all but the forward pass
  EngineStats stats;     // at the end

  double output_tokens_per_second() const { return static_cast<double>(output_tokens) / seconds; }
  double hit_rate() const;  // of the tokens looked up
};

// Submits each request when its time has come, and waits for all. on_progress hears the number of
// requests that have ended, now and then.
// Errors: of Submit, and the engine is shut down then;  of the first text that failed.
Result<ServingFigures> Serve(Engine& engine, std::span<const TracedRequest> trace,
                             int64_t vocab_size,
                             const std::function<void(int64_t num_done)>& on_progress = {});

// Runs the num_requests shortest requests side by side, and each alone on a second engine: their
// tokens must be the same. Errors: internal: they are not.
Status CheckServing(const Model& model, const EngineOptions& options,
                    std::span<const TracedRequest> trace, int64_t num_requests);

// Time to the first token of a prompt, when nothing of it is known and when all but its last
// num_new tokens are.
struct PrefixTimes {
  double miss_us = 0;
  double hit_us = 0;
};

// The median of three prompts each.
Result<PrefixTimes> TimePrefixHit(Engine& engine, int64_t num_prefix, int64_t num_new,
                                  int64_t vocab_size);

}  // namespace kvick

#endif  // KVICK_PROVE_SERVING_RUN_H_
