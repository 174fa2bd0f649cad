// kvick generate: completes one text or a batch of them.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "demo_model.h"
#include "text_printer.h"

namespace kvick::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct GenerateOptions {
  ModelOptions model;
  std::vector<std::string> prompts;
  std::optional<std::string> prompt_file;
  std::vector<std::string> token_prompts;
  GenerateRequest request;
  int64_t seed = 0;
  bool json = false;
};

double Milliseconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1000; }

double PerSecond(int64_t num, int64_t microseconds) {
  return microseconds > 0 ? static_cast<double>(num) * 1e6 / static_cast<double>(microseconds) : 0;
}

Result<std::vector<std::vector<int32_t>>> Prompts(const GenerateOptions& options,
                                                  const Model& model) {
  std::vector<std::string> texts = options.prompts;
  if (options.prompt_file) {
    KVICK_ASSIGN_OR_RETURN(std::string text, ReadText(*options.prompt_file));
    if (!text.empty() && text.back() == '\n') text.pop_back();  // the editor's, not the author's
    texts.push_back(std::move(text));
  }
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& text : texts) {
    KVICK_ASSIGN_OR_RETURN(prompts.emplace_back(), model.Encode(text));
  }
  for (const std::string& list : options.token_prompts) {
    KVICK_ASSIGN_OR_RETURN(prompts.emplace_back(), ParseTokens(list));
  }
  return prompts;
}

nlohmann::json CacheJson(const Engine& engine) {
  if (engine.cache() == nullptr) return nullptr;
  const KvLayout& layout = engine.cache()->layout();
  return {{"dtype", DTypeName(layout.dtype)},
          {"block_tokens", layout.block_tokens},
          {"bytes_per_token", layout.BytesPerToken()},
          {"reserved_bytes", engine.stats().peak.reserved_bytes},
          {"used_bytes", engine.stats().peak.used_bytes}};
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
  nlohmann::json text = nullptr;
  if (model.has_tokenizer()) {
    TextStream stream(model);
    std::string all;
    for (const int32_t token : result.tokens) all += stream.Append(token);
    text = all + stream.Finish();
  }
  return {{"prompt_tokens", request.prompt},
          {"tokens", result.tokens},
          {"text", std::move(text)},
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

void NoteEnds(const Engine& engine, std::span<const GenerateResult> results) {
  for (const GenerateResult& result : results) {
    if (!result.context_is_full) continue;
    Note(
        fmt::format("the context of {} tokens is full after {} new tokens: generation stopped (-c "
                    "sets it)",
                    engine.context_tokens(), result.tokens.size()));
  }
}

void NoteSpeed(const EngineStats& stats) {
  if (isatty(STDERR_FILENO) != 1) return;
  Note(fmt::format("prompt {} tokens, {:.1f} tokens/s; decode {} tokens, {:.1f} tokens/s",
                   stats.prompt_tokens, PerSecond(stats.prompt_tokens, stats.prompt_us),
                   stats.decode_tokens, PerSecond(stats.decode_tokens, stats.decode_us)));
}

Status RunGenerate(const GenerateOptions& options) {
  const Clock::time_point start = Clock::now();
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  KVICK_ASSIGN_OR_RETURN(auto prompts, Prompts(options, *model));
  std::vector<GenerateRequest> requests(prompts.size(), options.request);
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests[i].prompt = std::move(prompts[i]);
    if (requests[i].max_new_tokens < 0) requests[i].max_new_tokens = kMostTokens;
    requests[i].sampling.seed = static_cast<uint64_t>(options.seed);
  }
  EngineOptions engine_options = options.model.ToEngineOptions();
  engine_options.max_sequences = static_cast<int64_t>(requests.size());
  KVICK_ASSIGN_OR_RETURN(const auto engine, Engine::Create(*model, engine_options));
  NoteContext(*engine, model->info());
  const int64_t load_us =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();

  TextPrinter printer(*model, requests);
  Progress progress("prompt tokens");
  EngineCallbacks callbacks;
  callbacks.on_prompt = [&](int64_t done, int64_t total) {
    if (!options.json) printer.Start();  // not before the requests have been found good
    done < total ? progress.Show(done, total) : progress.Clear();
  };
  if (!options.json) {
    callbacks.on_token = [&](int64_t request_idx, int32_t token) {
      progress.Clear();
      return printer.Append(request_idx, token);
    };
    callbacks.on_finish = [&](int64_t request_idx) { printer.Finish(request_idx); };
  }
  KVICK_ASSIGN_OR_RETURN(const auto results, engine->Generate(requests, callbacks));
  progress.Clear();
  if (options.json) {
    PrintResults(*model, requests, results,
                 {{"context_tokens", engine->context_tokens()},
                  {"cache", CacheJson(*engine)},
                  {"timings", TimingsJson(engine->stats(), load_us)},
                  {"isa", engine->runner().isa()}});
  } else {
    NoteSpeed(engine->stats());
  }
  NoteEnds(*engine, results);
  return {};
}

}  // namespace

Verb AddGenerate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  options->model.AddTo(app);
  auto* what = app.add_option_group("prompt", "what to complete");
  what->add_option("-p,--prompt", options->prompts, "a text; more than one makes a batch")
      ->allow_extra_args(false);
  what->add_option("-f,--file", options->prompt_file, "a file with the text; - is stdin");
  what->add_option("--tokens", options->token_prompts, "token ids, as in 1,403,407")
      ->allow_extra_args(false);
  what->require_option(1);
  GenerateRequest& request = options->request;
  app.add_option("-n,--predict", request.max_new_tokens,
                 "the most new tokens; -1: until the context is full")
      ->check(CLI::Range(int64_t{-1}, kMostTokens))
      ->capture_default_str();
  app.add_option("--temp", request.sampling.temperature, "0: always the most likely token")
      ->capture_default_str();
  app.add_option("--top-k", request.sampling.top_k, "of the k most likely; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", request.sampling.top_p, "of the fewest that hold this probability")
      ->capture_default_str();
  app.add_option("--min-p", request.sampling.min_p, "of those this likely, against the best")
      ->capture_default_str();
  app.add_option("-s,--seed", options->seed, "of the draws; the same seed, the same text")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max() - 1))
      ->capture_default_str();
  app.add_flag("--ignore-eos", request.ignore_end, "go on after a token that ends a text");
  app.add_flag("--json", options->json, "print one JSON object");
  app.footer("Example: kvick generate -m model.gguf -p \"Once upon a time\" -n 200");
  return [options] { return RunGenerate(*options); };
}

}  // namespace kvick::cli
