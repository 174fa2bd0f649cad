// kvick logits: the logits of every position of a text, for comparison with anything else.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "cli.h"
#include "demo_model.h"
#include "npy.h"

namespace kvick::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string tokens;
  std::string output;
  bool json = false;
};

Status RunLogits(const LogitsOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ParseTokens(options.tokens));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  EngineOptions engine_options = options.model.ToEngineOptions();
  if (engine_options.context_tokens == 0) {  // this text and no more
    engine_options.context_tokens = static_cast<int64_t>(tokens.size());
  }
  KVICK_ASSIGN_OR_RETURN(const auto engine, Engine::Create(*model, engine_options));
  NoteContext(*engine, model->info());
  const int64_t vocab_size = model->info().vocab_size;
  std::vector<float> logits(tokens.size() * static_cast<size_t>(vocab_size));
  Progress progress("positions");
  EngineCallbacks callbacks;
  callbacks.on_prompt = [&](int64_t done, int64_t total) { progress.Show(done, total); };
  KVICK_RETURN_IF_ERROR(engine->Logits(tokens, logits, callbacks));
  progress.Clear();
  KVICK_RETURN_IF_ERROR(WriteNpy(options.output, logits, vocab_size));
  if (options.json) {
    PrintJson({{"output", options.output},
               {"shape", {tokens.size(), vocab_size}},
               {"cache_dtype", DTypeName(engine->runner().kv_dtype())},
               {"isa", engine->runner().isa()}});
  } else {
    fmt::print("{}: float32 [{}, {}]\n", options.output, tokens.size(), vocab_size);
  }
  return {};
}

}  // namespace

Verb AddLogits(CLI::App& app) {
  auto options = std::make_shared<LogitsOptions>();
  options->model.AddTo(app);
  app.add_option("--tokens", options->tokens, "token ids, as in 1,403,407")->required();
  app.add_option("-o,--output", options->output, "the .npy file: float32 [tokens, vocabulary]")
      ->required();
  app.add_flag("--json", options->json, "print one JSON object");
  app.footer("Example: kvick logits -m model.gguf --tokens 1,403,407 -o logits.npy");
  return [options] { return RunLogits(*options); };
}

}  // namespace kvick::cli
