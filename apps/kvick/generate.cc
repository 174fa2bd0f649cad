// kvick generate: completes one prompt or a few.

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "demo_model.h"
#include "engine/recompute.h"
#include "engine/sequence.h"
#include "help.h"
#include "input_text.h"
#include "notes.h"
#include "options.h"
#include "terminal.h"
#include "text_printer.h"

namespace kvick::cli {
namespace {

struct GenerateOptions {
  ModelOptions model;
  Words words;
  std::vector<std::string> prompts;
  std::string prompt_file;
  std::vector<std::string> token_prompts;
  GenerateRequest request;
  int64_t seed = 0;
  bool no_parse_special = false;
  bool json = false;

  // Takes what the words say. Throws CLI::ParseError.
  void Complete();
};

void GenerateOptions::Complete() {
  const std::optional<std::string> text = words.TakeText(model.model);
  const int num_kinds = (text ? 1 : 0) + (prompts.empty() ? 0 : 1) + (prompt_file.empty() ? 0 : 1) +
                        (token_prompts.empty() ? 0 : 1);
  if (num_kinds == 0) {
    throw CLI::RequiredError(
        "expected a prompt: put it in quotes, or use --prompt, --file or --tokens",
        CLI::ExitCodes::RequiredError);
  }
  if (num_kinds > 1) {
    throw CLI::ValidationError(
        "expected one kind of prompt: a word in quotes, --prompt, --file or --tokens");
  }
  if (text) prompts.push_back(*text);
}

double Milliseconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1000; }

double PerSecond(int64_t num, int64_t microseconds) {
  return microseconds > 0 ? static_cast<double>(num) * 1e6 / static_cast<double>(microseconds) : 0;
}

Result<std::vector<std::vector<int32_t>>> Prompts(const GenerateOptions& options,
                                                  const Model& model) {
  std::vector<std::string> texts = options.prompts;
  if (!options.prompt_file.empty()) {
    KVICK_ASSIGN_OR_RETURN(texts.emplace_back(), ReadPrompt(options.prompt_file));
  }
  const TextOptions text_options = {.parse_special = !options.no_parse_special};
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& text : texts) {
    KVICK_ASSIGN_OR_RETURN(prompts.emplace_back(), model.Encode(text, text_options));
  }
  for (const std::string& list : options.token_prompts) {
    KVICK_ASSIGN_OR_RETURN(prompts.emplace_back(), ReadTokens(list));
  }
  return prompts;
}

// What made the texts, and how long it took.
struct Outcome {
  std::vector<GenerateResult> results;
  ContextSize context;
  EngineStats stats;
  nlohmann::json cache;  // null without one
  std::string numerics;
  std::string isa;
  int64_t load_us = 0;
};

nlohmann::json CacheJson(const Engine& engine, const EngineStats& stats) {
  const KvConfig& config = engine.cache_config();
  return {{"dtype", DTypeName(config.dtype)},
          {"block_tokens", config.block_tokens},
          {"bytes_per_token", stats.peak.capacity_bytes / config.num_blocks / config.block_tokens},
          {"reserved_bytes", stats.peak.reserved_bytes},
          {"used_bytes", stats.peak.used_bytes}};
}

nlohmann::json TimingsJson(const EngineStats& stats, int64_t load_us) {
  return {{"load_ms", Milliseconds(load_us)},
          {"prompt_tokens", stats.prompt_tokens},
          {"prompt_ms", Milliseconds(stats.prompt_us)},
          {"prompt_tokens_per_second", PerSecond(stats.prompt_tokens, stats.prompt_us)},
          {"decode_tokens", stats.decode_tokens},
          {"decode_ms", Milliseconds(stats.decode_us)},
          {"decode_tokens_per_second", PerSecond(stats.decode_tokens, stats.decode_us)}};
}

nlohmann::json ResultJson(const Model& model, const GenerateRequest& request,
                          const GenerateResult& result) {
  return {{"prompt_tokens", request.prompt},
          {"tokens", result.tokens},
          {"text", model.has_tokenizer() ? nlohmann::json(result.text) : nlohmann::json(nullptr)},
          {"finish_reason", FinishReasonName(result.finish_reason)}};
}

// One prompt: its result stands at the top level. Several: in "results".
void PrintResults(const Model& model, std::span<const GenerateRequest> requests,
                  std::span<const GenerateResult> results, nlohmann::json object) {
  std::vector<nlohmann::json> all;
  for (size_t i = 0; i < results.size(); ++i) {
    all.push_back(ResultJson(model, requests[i], results[i]));
  }
  if (all.size() == 1) {
    object.update(all.front());
  } else {
    object["results"] = std::move(all);
  }
  PrintJson(object);
}

void NoteEnds(const Outcome& outcome) {
  for (const GenerateResult& result : outcome.results) {
    if (result.nan_logits) Note(NanWarning(*result.nan_logits));
    if (!result.context_is_full) continue;
    Note(
        fmt::format("the context of {} tokens is full after {} new tokens: generation stopped "
                    "(-c sets the context)",
                    outcome.context.tokens, result.tokens.size()));
  }
}

void NoteSpeed(const EngineStats& stats) {
  if (isatty(STDERR_FILENO) != 1) return;
  Note(fmt::format("prompt {} tokens, {:.1f} tokens/s; decode {} tokens, {:.1f} tokens/s",
                   stats.prompt_tokens, PerSecond(stats.prompt_tokens, stats.prompt_us),
                   stats.decode_tokens, PerSecond(stats.decode_tokens, stats.decode_us)));
}

// Prints what the requests say while they run, and how far their prompts are.
class Listener {
 public:
  Listener(const Model& model, const GenerateOptions& options,
           std::span<const GenerateRequest> requests)
      : is_silent_(options.json), printer_(model, requests), num_done_(requests.size(), 0) {
    for (const GenerateRequest& request : requests) num_total_ += std::ssize(request.prompt);
  }

  RequestCallbacks Callbacks(size_t request_idx) {
    RequestCallbacks callbacks;
    callbacks.on_prompt = [this, request_idx](int64_t num_done, int64_t) {
      ShowPrompt(request_idx, num_done);
    };
    if (is_silent_) return callbacks;
    callbacks.on_token = [this, request_idx](const TokenEvent& event) {
      progress_.Clear();
      return printer_.Append(request_idx, event.text);
    };
    callbacks.on_finish = [this, request_idx](const GenerateResult& result) {
      printer_.Finish(request_idx, result.text);
    };
    return callbacks;
  }

 private:
  void ShowPrompt(size_t request_idx, int64_t num_done) {
    if (!is_silent_) printer_.Start();  // not before the requests have been found good
    num_done_sum_ += num_done - std::exchange(num_done_[request_idx], num_done);
    num_done_sum_ < num_total_ ? progress_.Show(num_done_sum_, num_total_) : progress_.Clear();
  }

  bool is_silent_;
  TextPrinter printer_;
  Progress progress_{"prompt tokens"};
  std::vector<int64_t> num_done_;  // prompt tokens of each request
  int64_t num_done_sum_ = 0;
  int64_t num_total_ = 0;
};

Result<Outcome> RunCached(const Model& model, const GenerateOptions& options,
                          std::span<const GenerateRequest> requests, Clock::time_point start) {
  EngineOptions engine_options = options.model.ToEngineOptions();
  engine_options.max_sequences = std::ssize(requests);
  KVICK_ASSIGN_OR_RETURN(const auto engine, Engine::Create(model, engine_options));
  Outcome outcome;
  outcome.context = {engine->context_tokens(), engine->context_is_capped()};
  NoteContext(outcome.context, model.info());
  outcome.load_us = MicrosecondsSince(start);
  Listener listener(model, options, requests);
  std::vector<RequestCallbacks> callbacks;
  for (size_t i = 0; i < requests.size(); ++i) callbacks.push_back(listener.Callbacks(i));
  KVICK_ASSIGN_OR_RETURN(outcome.results, engine->Generate(requests, callbacks));
  outcome.stats = engine->stats();
  outcome.cache = CacheJson(*engine, outcome.stats);
  outcome.numerics = engine->numerics();
  outcome.isa = engine->isa();
  return outcome;
}

Result<Outcome> RunRecomputed(const Model& model, const GenerateOptions& options,
                              std::span<const GenerateRequest> requests, Clock::time_point start) {
  KVICK_ASSIGN_OR_RETURN(const auto recomputer,
                         Recomputer::Create(model, options.model.ToRecomputeOptions()));
  Outcome outcome;
  outcome.context = recomputer->context();
  NoteContext(outcome.context, model.info());
  outcome.load_us = MicrosecondsSince(start);
  Listener listener(model, options, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    KVICK_ASSIGN_OR_RETURN(outcome.results.emplace_back(),
                           recomputer->Generate(requests[i], listener.Callbacks(i)));
  }
  outcome.stats = recomputer->stats();
  outcome.numerics = recomputer->runner().numerics();
  outcome.isa = recomputer->runner().isa();
  return outcome;
}

Status RunGenerate(const GenerateOptions& options) {
  const Clock::time_point start = Clock::now();
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  KVICK_ASSIGN_OR_RETURN(auto prompts, Prompts(options, *model));
  std::vector<GenerateRequest> requests(prompts.size(), options.request);
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests[i].prompt = std::move(prompts[i]);
    if (requests[i].max_new_tokens < 0) requests[i].max_new_tokens = kMaxTokens;
    requests[i].sampling.seed = static_cast<uint64_t>(options.seed);
  }
  const auto run = options.model.no_cache ? RunRecomputed : RunCached;
  KVICK_ASSIGN_OR_RETURN(const Outcome outcome, run(*model, options, requests, start));
  for (const GenerateResult& result : outcome.results) {
    if (result.error) return tl::unexpected(*result.error);
  }
  if (options.json) {
    PrintResults(*model, requests, outcome.results,
                 {{"context_tokens", outcome.context.tokens},
                  {"cache", outcome.cache},
                  {"timings", TimingsJson(outcome.stats, outcome.load_us)},
                  {"numerics", outcome.numerics},
                  {"isa", outcome.isa}});
  } else {
    NoteSpeed(outcome.stats);
  }
  NoteEnds(outcome);
  return {};
}

void AddPromptOptions(CLI::App& app, GenerateOptions& options) {
  AddTexts(app, "-p,--prompt", options.prompts, "a prompt; give -p again for more of them");
  app.add_option("-f,--file", options.prompt_file,
                 "read the prompt from a file (UTF-8; - is stdin), without the end of its last "
                 "line; CR LF counts as LF")
      ->type_name("FILE")
      ->check(NotEmpty());
  AddTexts(app, "--tokens", options.token_prompts, kTokensHelp)
      ->type_name("IDS")
      ->check(TokensCheck());
  app.add_flag("--no-parse-special", options.no_parse_special,
               "read control tokens that the prompt spells, such as </s>, as plain characters");
}

void AddSamplingOptions(CLI::App& app, GenerateRequest& request, int64_t& seed) {
  SamplingOptions& sampling = request.sampling;
  app.option_defaults()->group("Sampling");
  app.add_option("--temp", sampling.temperature, "temperature; 0 takes the most likely token")
      ->transform(RealAtLeast(0))
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "keep the k most likely tokens; 0 or -1 keeps all")
      ->transform(IntAtLeast(-1, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "keep the fewest tokens whose probabilities add up to this; 0 keeps the best one")
      ->transform(RealFrom(0, 1))
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p,
                 "keep tokens at least this likely, relative to the best one")
      ->transform(RealFrom(0, 1))
      ->capture_default_str();
  app.add_option(
         "--repeat-penalty", sampling.repetition_penalty,
         "penalty for tokens that occurred: divides positive logits, multiplies negative ones")
      ->transform(RealFrom(0.01, 100))
      ->capture_default_str();
  app.add_option("-s,--seed", seed, "seed of the sampling; the same seed gives the same text")
      ->transform(IntAtLeast(0, std::numeric_limits<int64_t>::max() - 1))
      ->capture_default_str();
}

void AddStopOptions(CLI::App& app, GenerateRequest& request) {
  app.option_defaults()->group("End of the text");
  app.add_option("-n,--predict", request.max_new_tokens,
                 "maximum new tokens; -1: until the context is full")
      ->transform(IntAtLeast(-1))
      ->capture_default_str();
  AddTexts(app, "--stop", request.stop, "stop string: end before it; may be given again");
  app.add_flag("--ignore-eos", request.ignore_eos, "go on after an end-of-sequence token");
}

}  // namespace

Verb AddGenerate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  AddExample(app, "kvick generate model.gguf \"Once upon a time\" -n 200");
  app.option_defaults()->group("Model and prompt");
  options->words.AddTo(app, options->model.model);
  AddPromptOptions(app, *options);
  AddSamplingOptions(app, options->request, options->seed);
  AddStopOptions(app, options->request);
  app.option_defaults()->group("Cache and machine");
  options->model.AddTo(app);
  app.option_defaults()->group("Output");
  AddJsonFlag(app, options->json);
  app.callback([options] { options->Complete(); });
  return [options] { return RunGenerate(*options); };
}

}  // namespace kvick::cli
