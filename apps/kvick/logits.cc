// kvick logits: the logits of every position of a text, to compare with anything else.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/memory.h"
#include "cli.h"
#include "demo_model.h"
#include "engine/recompute.h"
#include "engine/text_logits.h"
#include "help.h"
#include "input_text.h"
#include "notes.h"
#include "npy.h"
#include "options.h"
#include "output_file.h"
#include "terminal.h"

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
  std::string numerics;
  std::string isa;
};

template <class Source>  // TextLogits, Recomputer
Result<Origin> Compute(Source& source, const ModelInfo& info, std::span<const int32_t> tokens,
                       std::span<float> logits) {
  NoteContext(source.context(), info);
  Progress progress("positions");
  KVICK_RETURN_IF_ERROR(source.Logits(
      tokens, logits, [&](int64_t num_done) { progress.Show(num_done, std::ssize(tokens)); }));
  const ModelRunner& runner = source.runner();
  return Origin{runner.kv_dtype(), runner.numerics(), std::string(runner.isa())};
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
  KVICK_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadTokens(options.tokens));
  KVICK_RETURN_IF_ERROR(CheckWritable(options.output));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  if (options.model.context_tokens == 0) {  // this text and no more
    options.model.context_tokens = std::ssize(tokens);
  }
  const int64_t vocab_size = model->info().vocab_size;
  const int64_t num_logits = std::ssize(tokens) * vocab_size;  // both fit 31 bits
  KVICK_ASSIGN_OR_RETURN(
      const MappedRegion memory,
      MappedRegion::Create(std::max<int64_t>(1, num_logits) * int64_t{sizeof(float)},
                           Backing::kUpFront));
  const std::span logits(reinterpret_cast<float*>(memory.data()), static_cast<size_t>(num_logits));
  KVICK_ASSIGN_OR_RETURN(const Origin origin, Compute(*model, options.model, tokens, logits));
  KVICK_RETURN_IF_ERROR(WriteNpy(options.output, logits, vocab_size));
  if (options.output == "-") return {};
  if (options.json) {
    PrintJson({{"output", options.output},
               {"shape", {tokens.size(), vocab_size}},
               {"cache_dtype", DTypeName(origin.cache_dtype)},
               {"numerics", origin.numerics},
               {"isa", origin.isa}});
  } else {
    fmt::print("{}: float32 [{}, {}]\n", options.output, tokens.size(), vocab_size);
  }
  return {};
}

}  // namespace

Verb AddLogits(CLI::App& app) {
  auto options = std::make_shared<LogitsOptions>();
  AddExample(app, "kvick logits model.gguf --tokens 1,403,407 -o logits.npy");
  AddModelOption(app, options->model.model);
  app.add_option("--tokens", options->tokens, kTokensHelp)
      ->type_name("IDS")
      ->check(TokensCheck())
      ->required();
  app.add_option("-o,--output", options->output,
                 "the .npy file, float32 [tokens, vocabulary]; - is stdout")
      ->type_name("FILE")
      ->check(NotEmpty())
      ->required();
  AddJsonFlag(app, options->json);
  app.option_defaults()->group("Cache and machine");
  options->model.AddTo(app);
  app.callback([options] {
    if (options->json && options->output == "-") {
      throw CLI::ValidationError("--json: expected -o FILE, got stdout");
    }
  });
  return [options] { return RunLogits(*options); };
}

}  // namespace kvick::cli
