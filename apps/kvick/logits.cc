// kvick logits: the logits of every position of a text, for comparison with anything else.

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli.h"
#include "demo_model.h"
#include "engine/recompute.h"
#include "engine/text_logits.h"
#include "npy.h"

namespace kvick::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string tokens;
  std::string output;
  bool json = false;
};

// How the logits were computed.
struct Origin {
  DType cache_dtype;
  std::string isa;
};

template <class Source>  // TextLogits, Recomputer
Result<Origin> Compute(Source& source, const ModelInfo& info, std::span<const int32_t> tokens,
                       std::span<float> logits) {
  NoteContext(source.context(), info);
  Progress progress("positions");
  KVICK_RETURN_IF_ERROR(source.Logits(
      tokens, logits, [&](int64_t num_done) { progress.Show(num_done, std::ssize(tokens)); }));
  return Origin{source.runner().kv_dtype(), std::string(source.runner().isa())};
}

Result<Origin> Compute(const Model& model, const ModelOptions& options,
                       std::span<const int32_t> tokens, std::span<float> logits) {
  if (options.no_cache) {
    KVICK_ASSIGN_OR_RETURN(const auto source,
                           Recomputer::Create(model, options.ToRecomputeOptions()));
    return Compute(*source, model.info(), tokens, logits);
  }
  KVICK_ASSIGN_OR_RETURN(const auto source, TextLogits::Create(model, options.ToEngineOptions()));
  return Compute(*source, model.info(), tokens, logits);
}

Status RunLogits(LogitsOptions options) {
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ParseTokens(options.tokens));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  if (options.model.context_tokens == 0) {  // this text and no more
    options.model.context_tokens = std::ssize(tokens);
  }
  const int64_t vocab_size = model->info().vocab_size;
  std::vector<float> logits(tokens.size() * static_cast<size_t>(vocab_size));
  KVICK_ASSIGN_OR_RETURN(const Origin origin, Compute(*model, options.model, tokens, logits));
  KVICK_RETURN_IF_ERROR(WriteNpy(options.output, logits, vocab_size));
  if (options.json) {
    PrintJson({{"output", options.output},
               {"shape", {tokens.size(), vocab_size}},
               {"cache_dtype", DTypeName(origin.cache_dtype)},
               {"isa", origin.isa}});
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
