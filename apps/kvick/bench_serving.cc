// kvick bench serving: many requests in one amount of memory, in blocks and preallocated.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "benched_model.h"
#include "engine/context_size.h"
#include "help.h"
#include "input_text.h"
#include "options.h"
#include "prove/serving_run.h"
#include "prove/serving_trace.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

// 8 GiB of Llama 3 8B in bf16.
constexpr int64_t kDefaultCacheTokens = 65536;
// New tokens behind the cached prefix of the prompt whose first token is timed.
constexpr int64_t kNumNew = 32;

struct ServingBenchOptions {
  BenchedModelOptions model;
  TraceOptions trace;
  std::string trace_file;
  uint64_t cache_bytes = 0;  // 0: kDefaultCacheTokens
  int64_t context_tokens = 8192;
  int64_t block_tokens = 16;
  int64_t batch_tokens = 512;
  int64_t max_sequences = 256;
  int64_t prefix_tokens = 4096;
  ExecOptions exec;
  bool contiguous = false;
  bool compare = false;
  bool json = false;
  bool strict = false;
};

// One way to hold the cache, and what it did.
struct ServingRun {
  std::string layout;
  ServingFigures figures;
  std::optional<PrefixTimes> prefix;
  double drift = 0;  // of the speed of the machine, from before to after

  // Why the figures cannot be trusted, as one sentence without its end; empty if they can.
  std::string Distrust() const {
    if (drift <= kMaxSpread) return "";
    return fmt::format("expected a machine that keeps its speed within {:.0f} %, got {:.0f} %",
                       100 * kMaxSpread, 100 * drift);
  }
};

Result<std::vector<TracedRequest>> Trace(const ServingBenchOptions& options) {
  TraceOptions trace = options.trace;
  trace.max_tokens = std::min(options.context_tokens, trace.max_tokens);
  if (options.trace_file.empty()) return MakeTrace(trace);
  KVICK_ASSIGN_OR_RETURN(const std::string lines, ReadText(options.trace_file));
  return ParseTrace(lines, trace);
}

// A preallocated cache gives each request its own memory: nothing is shared.
Result<EngineOptions> ToEngineOptions(const ServingBenchOptions& options, const ModelInfo& info,
                                      int64_t block_tokens) {
  KVICK_ASSIGN_OR_RETURN(const int64_t token_bytes, CacheBytesPerToken(info, std::nullopt));
  EngineOptions engine;
  engine.max_sequences = options.max_sequences;
  engine.context_tokens = options.context_tokens;
  engine.block_tokens = block_tokens;
  engine.cache_bytes = options.cache_bytes > 0 ? static_cast<int64_t>(options.cache_bytes)
                                               : kDefaultCacheTokens * token_bytes;
  engine.batch_tokens = options.batch_tokens;
  engine.prefix_reuse = block_tokens > 0 ? PrefixReuse::kOn : PrefixReuse::kOff;
  engine.exec = options.exec;
  return engine;
}

// How fast the machine reads and multiplies. A run of serving takes minutes and cannot alternate
// with a limit, so the limits are taken before and after it.
class MachineSpeed {
 public:
  static Result<MachineSpeed> Create(const BenchSetup& setup) {
    KVICK_ASSIGN_OR_RETURN(auto buffer, MakeReadBuffer(setup));
    return MachineSpeed({ReadBenchLimit(std::move(buffer), setup.exec),
                         MultiplyBenchLimit(setup.exec, Multiplication::kF32Fma)});
  }

  // How far the limits are from those of the last call, at most. 0 at the first.
  Result<double> Drift() {
    std::vector<Contender> contenders;
    for (const BenchLimit& limit : limits_) contenders.push_back(limit.contender);
    KVICK_ASSIGN_OR_RETURN(std::vector<Timing> timings,
                           TimeInterleaved(contenders, {.seconds = kSeconds}));
    double drift = 0;
    for (size_t i = 0; i < last_.size(); ++i) {
      const double ratio = timings[i].quiet_us() / last_[i].quiet_us();
      drift = std::max({drift, ratio - 1, 1 / ratio - 1});
    }
    last_ = std::move(timings);
    return drift;
  }

 private:
  static constexpr double kSeconds = 0.5;

  explicit MachineSpeed(std::vector<BenchLimit> limits) : limits_(std::move(limits)) {}

  std::vector<BenchLimit> limits_;
  std::vector<Timing> last_;
};

Result<ServingRun> RunLayout(const ServingBenchOptions& options, const Model& model,
                             std::span<const TracedRequest> trace, int64_t block_tokens) {
  constexpr int64_t kNumChecked = 8;
  KVICK_ASSIGN_OR_RETURN(const EngineOptions engine_options,
                         ToEngineOptions(options, model.info(), block_tokens));
  KVICK_RETURN_IF_ERROR(CheckServing(model, engine_options, trace, kNumChecked));
  KVICK_ASSIGN_OR_RETURN(const auto engine, Engine::Create(model, engine_options));
  const int64_t vocab_size = model.info().vocab_size;
  ServingRun run;
  run.layout = LayoutName(block_tokens);
  Progress progress("requests, " + run.layout);
  KVICK_ASSIGN_OR_RETURN(run.figures, Serve(*engine, trace, vocab_size, [&](int64_t num_done) {
                           progress.Show(num_done, std::ssize(trace));
                         }));
  if (engine_options.prefix_reuse == PrefixReuse::kOn) {
    KVICK_ASSIGN_OR_RETURN(run.prefix,
                           TimePrefixHit(*engine, options.prefix_tokens, kNumNew, vocab_size));
  }
  return run;
}

nlohmann::json PercentilesJson(const Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}};
}

nlohmann::json RunJson(const ServingRun& run) {
  const ServingFigures& f = run.figures;
  nlohmann::json json = {{"layout", run.layout},
                         {"seconds", f.seconds},
                         {"requests", f.num_requests},
                         {"prompt_tokens", f.prompt_tokens},
                         {"output_tokens", f.output_tokens},
                         {"output_tokens_per_s", f.output_tokens_per_second()},
                         {"first_token_ms", PercentilesJson(f.first_token_ms)},
                         {"between_tokens_ms", PercentilesJson(f.between_tokens_ms)},
                         {"in_flight", f.in_flight},
                         {"most_in_flight", f.stats.max_running},
                         {"pool_use", f.pool_use},
                         {"waste", f.waste},
                         {"hit_rate", f.hit_rate()},
                         {"preemptions", f.stats.num_preemptions},
                         {"overhead", f.overhead}};
  if (run.prefix) {
    json["prefix"] = {{"miss_first_token_ms", run.prefix->miss_us / 1e3},
                      {"hit_first_token_ms", run.prefix->hit_us / 1e3},
                      {"miss_over_hit", run.prefix->miss_us / run.prefix->hit_us}};
  }
  return json;
}

// What `bench compare` looks at.
nlohmann::json RowJson(const ServingRun& run) {
  nlohmann::json json = {{"name", "serving"},
                         {"case", run.layout},
                         {"tokens_per_s", run.figures.output_tokens_per_second()},
                         {"spread", run.drift}};
  AddTrust(json, run.Distrust());
  return json;
}

void PrintRun(const ServingBenchOptions& options, const ServingRun& run) {
  const ServingFigures& f = run.figures;
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("  {:<30}  {}\n", name, value);
  };
  const auto spread = [](const Percentiles& p) {
    return fmt::format("{:.1f}  {:.1f}  {:.1f}", p.p50, p.p90, p.p99);
  };
  fmt::print("\n{}\n", run.layout);
  line("time, s", fmt::format("{:.2f}", f.seconds));
  line("output tokens/s", fmt::format("{:.1f}", f.output_tokens_per_second()));
  line("first token, ms p50 p90 p99", spread(f.first_token_ms));
  line("between tokens, ms p50 p90 p99", spread(f.between_tokens_ms));
  line("requests in flight, mean most",
       fmt::format("{:.1f}  {}", f.in_flight, f.stats.max_running));
  line("pool in use, %", fmt::format("{:.1f}", 100 * f.pool_use));
  line("of that empty, %", fmt::format("{:.2f}", 100 * f.waste));
  line("prompt tokens found, %", fmt::format("{:.1f}", 100 * f.hit_rate()));
  line("preemptions", fmt::format("{}", f.stats.num_preemptions));
  line("step outside of the forward, %", fmt::format("{:.2f}", 100 * f.overhead));
  if (!run.Distrust().empty()) line("untrusted", run.Distrust());
  if (!run.prefix) return;
  line("first token, ms",
       fmt::format("{:.2f} with {} tokens known, {:.2f} with none: {:.1f} times",
                   run.prefix->hit_us / 1e3, options.prefix_tokens, run.prefix->miss_us / 1e3,
                   run.prefix->miss_us / run.prefix->hit_us));
}

std::vector<BenchRatio> Ratios(std::span<const ServingRun> runs) {
  if (runs.size() < 2) return {};
  const ServingFigures& paged = runs[0].figures;
  const ServingFigures& contiguous = runs[1].figures;
  const std::string distrust = runs[0].Distrust().empty() ? runs[1].Distrust() : runs[0].Distrust();
  const double spread = runs[0].drift + runs[1].drift;
  std::vector<BenchRatio> ratios;
  if (contiguous.in_flight > 0) {  // long enough for a look at it
    ratios.push_back({"requests in flight, paged / contiguous",
                      paged.in_flight / contiguous.in_flight, spread, distrust});
  }
  ratios.push_back({"output tokens/s, paged / contiguous",
                    paged.output_tokens_per_second() / contiguous.output_tokens_per_second(),
                    spread, distrust});
  return ratios;
}

void PrintRuns(const ServingBenchOptions& options, const BenchSetup& setup,
               std::span<const ServingRun> runs) {
  if (!options.json) {
    fmt::print("{}\n", MachineLine(setup));
    for (const ServingRun& run : runs) PrintRun(options, run);
    PrintRatios(Ratios(runs));
    return;
  }
  nlohmann::json json = {{"machine", MachineJson(setup)},
                         {"runs", nlohmann::json::array()},
                         {"rows", nlohmann::json::array()},
                         {"ratios", RatiosJson(Ratios(runs))}};
  for (const ServingRun& run : runs) {
    json["runs"].push_back(RunJson(run));
    json["rows"].push_back(RowJson(run));
  }
  PrintJson(json);
}

Outcome RunServing(const ServingBenchOptions& options) {
  BenchOptions machine;
  machine.exec = options.exec;
  KVICK_ASSIGN_OR_RETURN(const BenchSetup setup, BenchSetup::From(machine));
  KVICK_ASSIGN_OR_RETURN(const auto trace, Trace(options));
  if (options.prefix_tokens + kNumNew >= options.context_tokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "--prefix-tokens: expected at most {} with a context of {} tokens, got {}",
                options.context_tokens - kNumNew - 1, options.context_tokens,
                options.prefix_tokens);
  }
  KVICK_ASSIGN_OR_RETURN(const BenchedModel model,
                         BenchedModel::Create(options.model, setup.exec.num_threads));
  KVICK_ASSIGN_OR_RETURN(MachineSpeed speed, MachineSpeed::Create(setup));
  KVICK_RETURN_IF_ERROR(speed.Drift());
  std::vector<int64_t> layouts = {options.block_tokens, 0};
  if (!options.compare) layouts = {options.contiguous ? 0 : options.block_tokens};
  std::vector<ServingRun> runs;
  TrustCount count;
  for (const int64_t block_tokens : layouts) {
    KVICK_ASSIGN_OR_RETURN(runs.emplace_back(),
                           RunLayout(options, model.get(), trace, block_tokens));
    KVICK_ASSIGN_OR_RETURN(runs.back().drift, speed.Drift());
    ++count.num_all;
    if (!runs.back().Distrust().empty()) ++count.num_untrusted;
  }
  PrintRuns(options, setup, runs);
  return options.strict ? count.Strictly() : Status();
}

void AddTraceOptions(CLI::App& app, ServingBenchOptions& options) {
  TraceOptions& trace = options.trace;
  auto* file =
      app.add_option(
             "--trace", options.trace_file,
             "file of requests, one JSON object a line: arrival_ms, prompt_tokens, output_tokens, "
             "prefix_id, prefix_tokens; default: random, as the next options say")
          ->type_name("FILE")
          ->check(NotEmpty());
  app.add_option("--requests", trace.num_requests, "number of requests")
      ->transform(IntFrom(1, 1'000'000))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--mean-tokens", trace.mean_tokens,
                 "mean tokens of prompt and output together, lognormal")
      ->transform(RealAtLeast(2))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--length-deviation", trace.length_deviation,
                 "standard deviation of the logarithm of the length")
      ->transform(RealAtLeast(0))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--output-share", trace.output_share, "share of the output in these tokens")
      ->transform(RealFrom(0, 1))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--shared-prefix", trace.shared_prefix,
                 "share of a prompt that others of its prefix_id begin with too")
      ->transform(RealFrom(0, 1))
      ->capture_default_str();
  app.add_option("--prefixes", trace.num_prefixes, "number of different prefixes")
      ->transform(IntFrom(1, 1'000'000))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("--rate", trace.requests_per_second, "requests a second, Poisson")
      ->transform(RealAtLeast(0))
      ->capture_default_str()
      ->excludes(file);
  app.add_option("-s,--seed", trace.seed, "seed of the trace")
      ->transform(IntAtLeast(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str()
      ->excludes(file);
}

}  // namespace

Verb AddBenchServing(CLI::App& app) {
  auto options = std::make_shared<ServingBenchOptions>();
  AddExample(app, "kvick bench serving --compare");
  options->model.AddTo(app);
  AddTraceOptions(app, *options);
  AddSizeOption(app, "--cache-memory", options->cache_bytes,
                "memory of all blocks; default: that of 65,536 tokens, 8GiB for Llama 3 8B");
  app.add_option("-c,--ctx-size", options->context_tokens,
                 "maximum tokens of a request; a contiguous one reserves them all")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  auto* block = app.add_option("--block-tokens", options->block_tokens, "tokens in a block")
                    ->transform(IntAtLeast(1))
                    ->capture_default_str();
  auto* contiguous = app.add_flag("--contiguous", options->contiguous,
                                  "one block a request, nothing shared: the preallocated cache")
                         ->excludes(block);
  app.add_flag("--compare", options->compare, "run paged, then contiguous, and compare")
      ->excludes(contiguous);
  app.add_option("--batch-tokens", options->batch_tokens, "maximum tokens in one pass")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  app.add_option("--max-sequences", options->max_sequences, "maximum requests side by side")
      ->transform(IntFrom(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--prefix-tokens", options->prefix_tokens,
                 "cached tokens of the prompt whose first token is timed; 32 more are new")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  AddExecOptions(app, options->exec);
  AddJsonFlag(app, options->json);
  AddStrictFlag(app, options->strict);
  return [options] { return RunServing(*options); };
}

}  // namespace kvick::cli
