// kvick plan: what the caches of a model cost, before anything is allocated.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "cli.h"
#include "formats/json.h"
#include "known_models.h"
#include "kvick/kv_layout.h"
#include "model/llama_config.h"
#include "model/model_file.h"

namespace kvick::cli {
namespace {

struct PlanOptions {
  std::string model;
  int64_t context_tokens = 8192;
  int64_t num_requests = 8;
  int64_t mean_tokens = 1000;
  int64_t block_tokens = 16;
  uint64_t memory_bytes = uint64_t{24} << 30;
  std::string cache_type = "bf16";
  bool json = false;
};

// What a plan needs to know of a model.
struct PlannedModel {
  std::string name;
  KvConfig geometry;
  int64_t weight_bytes = 0;
};

// Weights in bf16, where no file says what they are in.
int64_t WeightBytes(const KnownModel& m) {
  const int64_t attention = 2 * m.hidden_size * m.head_dim * (m.num_heads + m.num_kv_heads);
  const int64_t layer = attention + 3 * m.hidden_size * m.intermediate_size + 2 * m.hidden_size;
  const int64_t embeddings = (m.tie_word_embeddings ? 1 : 2) * m.vocab_size * m.hidden_size;
  return 2 * (m.num_layers * layer + embeddings + m.hidden_size);
}

PlannedModel FromNumbers(const KnownModel& model) {
  PlannedModel planned;
  planned.name = model.name;
  planned.geometry.num_layers = model.num_layers;
  planned.geometry.num_kv_heads = model.num_kv_heads;
  planned.geometry.head_dim = model.head_dim;
  planned.weight_bytes = WeightBytes(model);
  return planned;
}

PlannedModel FromConfig(const std::string& path, const LlamaConfig& c) {
  PlannedModel planned = FromNumbers({path, c.num_layers, c.hidden_size, c.intermediate_size,
                                      c.num_heads, c.num_kv_heads, c.head_dim, c.vocab_size,
                                      c.max_positions, c.tie_word_embeddings});
  return planned;
}

int64_t TensorBytes(const TensorTable& tensors) {
  int64_t num_bytes = 0;
  for (const TensorInfo& tensor : tensors.all()) num_bytes += tensor.num_bytes;
  return num_bytes;
}

// A known name, a GGUF file, a Hugging Face folder, or a config.json alone.
Result<PlannedModel> ReadModel(const std::string& model) {
  if (const KnownModel* known = FindKnownModel(model)) return FromNumbers(*known);
  if (!std::filesystem::exists(model)) {
    std::vector<std::string_view> names;
    for (const KnownModel& known : KnownModels()) names.push_back(known.name);
    return Fail(ErrorCode::kNotFound, "{}: no such file, and of models these are known: {}", model,
                fmt::join(names, ", "));
  }
  if (std::filesystem::path(model).extension() == ".json") {
    KVICK_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonObject(model));
    KVICK_ASSIGN_OR_RETURN(const LlamaConfig config, LlamaConfigFromHf(json, model));
    return FromConfig(model, config);
  }
  KVICK_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(model));
  PlannedModel planned = FromConfig(model, file.config());
  planned.weight_bytes =
      TensorBytes(file.gguf() != nullptr ? file.gguf()->tensors() : file.hf_folder()->tensors());
  return planned;
}

// One way to hold the requests, in the cache's own arithmetic.
struct Layout {
  std::string name;
  int64_t block_tokens = 0;
  int64_t request_bytes = 0;  // of one request of the mean length
  int64_t reserved_bytes = 0;
  int64_t used_bytes = 0;
  int64_t requests_that_fit = 0;
};

Result<Layout> PlanLayout(const PlannedModel& model, const PlanOptions& options,
                          int64_t block_tokens) {
  KvConfig config = model.geometry;
  config.block_tokens = block_tokens;
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(config));
  const auto request_bytes =
      CheckedProduct({CeilDiv(options.mean_tokens, block_tokens), layout.block_stride});
  const auto used_tokens = CheckedProduct({options.num_requests, options.mean_tokens});
  const auto reserved = CheckedProduct({options.num_requests, request_bytes.value_or(-1)});
  const auto used = CheckedProduct({used_tokens.value_or(-1), layout.BytesPerToken()});
  if (!reserved || !used) {
    return Fail(ErrorCode::kInvalidArgument,
                "plan: {} requests of {} tokens are more bytes than a number holds",
                options.num_requests, options.mean_tokens);
  }
  const int64_t room =
      std::max<int64_t>(0, static_cast<int64_t>(options.memory_bytes) - model.weight_bytes);
  return Layout{block_tokens == options.context_tokens ? "contiguous" : "paged",
                block_tokens,
                *request_bytes,
                *reserved,
                *used,
                room / *request_bytes};
}

nlohmann::json LayoutJson(const Layout& layout) {
  return {{"block_tokens", layout.block_tokens},
          {"request_bytes", layout.request_bytes},
          {"reserved_bytes", layout.reserved_bytes},
          {"used_bytes", layout.used_bytes},
          {"empty_bytes", layout.reserved_bytes - layout.used_bytes},
          {"requests_that_fit", layout.requests_that_fit}};
}

std::string Human(int64_t num_bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(num_bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, kUnits[unit]);
}

void PrintPlan(const PlannedModel& model, const PlanOptions& options, const KvLayout& request,
               std::span<const Layout> layouts) {
  const int64_t all_bytes = options.num_requests * request.block_stride;
  fmt::print("{}, cache in {}\n\n", model.name, options.cache_type);
  fmt::print("  {:36} {:>16} {:>12}\n", "a token", request.BytesPerToken(),
             Human(request.BytesPerToken()));
  fmt::print("  {:36} {:>16} {:>12}\n",
             fmt::format("a request of {} tokens", options.context_tokens), request.block_stride,
             Human(request.block_stride));
  fmt::print("  {:36} {:>16} {:>12}\n", fmt::format("{} requests", options.num_requests), all_bytes,
             Human(all_bytes));
  fmt::print("  {:36} {:>16} {:>12}\n\n", "the weights", model.weight_bytes,
             Human(model.weight_bytes));
  fmt::print("{} requests of {} tokens on average\n\n  {:12} {:>12} {:>12} {:>12} {:>12} {:>24}\n",
             options.num_requests, options.mean_tokens, "", "block", "reserved", "used", "empty",
             fmt::format("fit beside the weights"));
  for (const Layout& layout : layouts) {
    fmt::print("  {:12} {:>12} {:>12} {:>12} {:>12} {:>24}\n", layout.name,
               fmt::format("{} tokens", layout.block_tokens), Human(layout.reserved_bytes),
               Human(layout.used_bytes), Human(layout.reserved_bytes - layout.used_bytes),
               fmt::format("{} in {}", layout.requests_that_fit,
                           Human(static_cast<int64_t>(options.memory_bytes))));
  }
}

Status RunPlan(const PlanOptions& options) {
  if (options.mean_tokens > options.context_tokens) {
    return Fail(ErrorCode::kInvalidArgument,
                "plan: --mean-tokens is {}, at most the {} of -c is possible", options.mean_tokens,
                options.context_tokens);
  }
  KVICK_ASSIGN_OR_RETURN(PlannedModel model, ReadModel(options.model));
  model.geometry.dtype = *ParseCacheType(options.cache_type);
  KVICK_ASSIGN_OR_RETURN(const KvLayout request,
                         KvLayout::Create(model.geometry.Contiguous(1, options.context_tokens)));
  KVICK_ASSIGN_OR_RETURN(const Layout contiguous,
                         PlanLayout(model, options, options.context_tokens));
  KVICK_ASSIGN_OR_RETURN(const Layout paged, PlanLayout(model, options, options.block_tokens));
  const Layout layouts[] = {contiguous, paged};
  if (!options.json) {
    PrintPlan(model, options, request, layouts);
    return {};
  }
  PrintJson({{"model", model.name},
             {"dtype", options.cache_type},
             {"bytes_per_token", request.BytesPerToken()},
             {"context_tokens", options.context_tokens},
             {"request_bytes", request.block_stride},
             {"requests", options.num_requests},
             {"requests_bytes", options.num_requests * request.block_stride},
             {"mean_tokens", options.mean_tokens},
             {"weight_bytes", model.weight_bytes},
             {"memory_bytes", options.memory_bytes},
             {"contiguous", LayoutJson(contiguous)},
             {"paged", LayoutJson(paged)}});
  return {};
}

}  // namespace

Verb AddPlan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  app.add_option("model", options->model,
                 "GGUF file, Hugging Face folder, config.json, or a name such as llama-3-8b")
      ->required();
  app.add_option("-c,--ctx-size", options->context_tokens, "tokens a request may hold")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  app.add_option("--requests", options->num_requests, "requests side by side")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  auto* mean = app.add_option("--mean-tokens", options->mean_tokens,
                              "tokens a request holds on average; default: 1000, or all of -c")
                   ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--block-tokens", options->block_tokens, "tokens in a block of the paged cache")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  AddSizeOption(app, "--memory", options->memory_bytes,
                "of the machine, as in 24GiB; default 24 GiB");
  app.add_option("--cache-type-k", options->cache_type, "-ctk: number type of the cache")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  app.footer("Example: kvick plan llama-3-8b --requests 8 --mean-tokens 1000");
  return [options, mean] {
    if (mean->empty())
      options->mean_tokens = std::min(options->mean_tokens, options->context_tokens);
    return RunPlan(*options);
  };
}

}  // namespace kvick::cli
