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

// Percentiles of many values, by nearest rank.
struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;

  static Percentiles Of(std::vector<double> values);
};

// How an engine served a trace.
struct ServingFigures {
  double seconds = 0;  // from the first arrival to the last finish
  int64_t num_requests = 0;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  Percentiles first_token_ms;     // from the arrival of a request
  Percentiles between_tokens_ms;  // of one completion
  // Means over the time in which requests were waiting; if none ever waited, in which any ran.
  double in_flight = 0;  // sequences that hold blocks
  double pool_use = 0;   // share of all bytes that is reserved
  double waste = 0;      // share of the reserved bytes that is empty
  double overhead = 0;   // share of a step's time outside of the forward pass
  EngineStats stats;     // at the end

  double output_tokens_per_second() const { return static_cast<double>(output_tokens) / seconds; }
  double hit_rate() const;  // share of the looked-up tokens that were found
};

// Submits each request at its arrival time and waits for all. on_progress is called now and then
// with the number of finished requests.
// Errors: those of Submit, after which the engine is shut down; that of the first failed request.
Result<ServingFigures> Serve(Engine& engine, std::span<const TracedRequest> trace,
                             int64_t vocab_size,
                             const std::function<void(int64_t num_done)>& on_progress = {});

// Engine::Generate, where a completion that fails is an error.
Result<std::vector<GenerateResult>> GenerateAll(Engine& engine,
                                                std::span<const GenerateRequest> requests);

// Runs the num_requests shortest requests together, and each alone on a second engine.
// Errors: internal: their tokens differ.
Status CheckServing(const Model& model, const EngineOptions& options,
                    std::span<const TracedRequest> trace, int64_t num_requests);

// Time to the first token of a prompt: if nothing of it is in the cache, and if all but its last
// num_new tokens are.
struct PrefixTimes {
  double miss_us = 0;
  double hit_us = 0;
};

// Medians of three prompts.
Result<PrefixTimes> TimePrefixHit(Engine& engine, int64_t num_prefix, int64_t num_new,
                                  int64_t vocab_size);

}  // namespace kvick

#endif  // KVICK_PROVE_SERVING_RUN_H_
