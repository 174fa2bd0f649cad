// kvick plan: what the caches of a model cost, before anything is allocated.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "cli.h"
#include "engine/context_size.h"
#include "formats/json.h"
#include "help.h"
#include "known_models.h"
#include "kvick/kv_layout.h"
#include "kvick/model.h"
#include "model/arch/read_spec.h"
#include "model/model_parts.h"
#include "notes.h"
#include "options.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr int64_t kDefaultMemoryBytes = int64_t{24} << 30;  // for a model that is not here

struct PlanOptions {
  std::string model;
  int64_t context_tokens = 0;  // 0: what kvick generate chooses
  int64_t num_requests = 8;
  int64_t mean_tokens = 0;  // 0: kDefaultMeanTokens, or the context if that is less
  int64_t block_tokens = 16;
  uint64_t memory_bytes = 0;  // 0: what the model's machine has
  std::string cache_type = "auto";
  bool json = false;
};

// What a plan needs to know of a model.
struct PlannedModel {
  std::string name;
  ModelInfo info;
  int64_t weight_bytes = 0;
  int64_t memory_bytes = kDefaultMemoryBytes;  // of its machine
};

int64_t NumWeights(const ModelInfo& m, bool tie_word_embeddings) {
  const int64_t attention = 2 * m.hidden_size * m.head_dim * (m.num_heads + m.num_kv_heads);
  const int64_t layer = attention + 3 * m.hidden_size * m.intermediate_size + 2 * m.hidden_size;
  const int64_t embeddings = (tie_word_embeddings ? 1 : 2) * m.vocab_size * m.hidden_size;
  return m.num_layers * layer + embeddings + m.hidden_size;
}

PlannedModel FromNumbers(const KnownModel& model, DType weight_dtype) {
  PlannedModel planned;
  planned.name = model.name;
  planned.info.num_layers = model.num_layers;
  planned.info.hidden_size = model.hidden_size;
  planned.info.intermediate_size = model.intermediate_size;
  planned.info.num_heads = model.num_heads;
  planned.info.num_kv_heads = model.num_kv_heads;
  planned.info.head_dim = model.head_dim;
  planned.info.vocab_size = model.vocab_size;
  planned.info.max_positions = model.max_positions;
  planned.info.weight_format = std::string(DTypeName(weight_dtype));
  planned.weight_bytes =
      NumWeights(planned.info, model.tie_word_embeddings) * DTypeBytes(weight_dtype);
  return planned;
}

// A config.json alone. What it does not say of its weights is taken for bf16.
Result<PlannedModel> FromConfig(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonObject(path));
  KVICK_ASSIGN_OR_RETURN(const ModelSpec c, ModelSpecFromHf(json, path));
  const std::string type = json.value("torch_dtype", nlohmann::json()).dump();
  DType weight_dtype = DType::kBF16;
  if (type == "\"float16\"") weight_dtype = DType::kF16;
  if (type == "\"float32\"") weight_dtype = DType::kF32;
  return FromNumbers(
      {path, c.num_layers(), c.hidden_size, c.intermediate_size, c.num_heads, c.num_kv_heads,
       c.head_dim, c.vocab_size, c.max_positions, c.tie_word_embeddings},
      weight_dtype);
}

int64_t TensorBytes(const TensorTable& tensors) {
  int64_t num_bytes = 0;
  for (const TensorInfo& tensor : tensors.all()) num_bytes += tensor.num_bytes;
  return num_bytes;
}

Result<PlannedModel> FromFile(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const auto model, Model::Open(path));
  const ModelFile& file = model->parts().file;
  const TensorTable& tensors =
      file.gguf() != nullptr ? file.gguf()->tensors() : file.hf_folder()->tensors();
  return PlannedModel{path, model->info(), TensorBytes(tensors), AvailableMemoryBytes()};
}

// A known name, a GGUF file, a Hugging Face folder, or a config.json alone.
Result<PlannedModel> ReadModel(const std::string& model) {
  if (const KnownModel* known = FindKnownModel(model)) return FromNumbers(*known, DType::kBF16);
  std::error_code ignored;
  if (!std::filesystem::exists(model, ignored)) {
    std::vector<std::string_view> names;
    for (const KnownModel& known : KnownModels()) names.push_back(known.name);
    return Fail(ErrorCode::kNotFound, "{}: expected a file, a folder or one of {}",
                ShownName(model), fmt::join(names, ", "));
  }
  if (std::filesystem::path(model).extension() == ".json") return FromConfig(model);
  return FromFile(model);
}

// What there is to plan: the options, with what they leave open.
struct Plan {
  DType dtype;
  ContextSize context;
  int64_t num_requests;
  int64_t mean_tokens;
  int64_t block_tokens;
  int64_t memory_bytes;
};

// The choices of kvick generate for this model on a machine of so much free memory.
Result<Plan> MakePlan(const PlannedModel& model, const PlanOptions& options) {
  constexpr int64_t kDefaultMeanTokens = 1000;
  EngineOptions engine;
  engine.context_tokens = options.context_tokens;
  engine.block_tokens = options.block_tokens;
  engine.kv_dtype = ParseCacheType(options.cache_type);
  Plan plan;
  plan.dtype = engine.kv_dtype.value_or(model.info.DefaultKvDType());
  plan.num_requests = options.num_requests;
  plan.block_tokens = options.block_tokens;
  plan.memory_bytes =
      options.memory_bytes > 0 ? static_cast<int64_t>(options.memory_bytes) : model.memory_bytes;
  KVICK_ASSIGN_OR_RETURN(plan.context, ChooseContext(model.info, engine, plan.memory_bytes));
  plan.mean_tokens = options.mean_tokens > 0 ? options.mean_tokens
                                             : std::min(kDefaultMeanTokens, plan.context.tokens);
  if (plan.mean_tokens <= plan.context.tokens) return plan;
  return Fail(ErrorCode::kInvalidArgument,
              "--mean-tokens: expected at most the context of {}, got {}", plan.context.tokens,
              plan.mean_tokens);
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

Result<Layout> PlanLayout(const PlannedModel& model, const Plan& plan, int64_t block_tokens) {
  KvConfig config = model.info.KvGeometry(plan.dtype);
  config.block_tokens = block_tokens;
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(config));
  const auto request_bytes =
      CheckedProduct({CeilDiv(plan.mean_tokens, block_tokens), layout.block_stride});
  const auto used_tokens = CheckedProduct({plan.num_requests, plan.mean_tokens});
  const auto reserved = CheckedProduct({plan.num_requests, request_bytes.value_or(-1)});
  const auto used = CheckedProduct({used_tokens.value_or(-1), layout.BytesPerToken()});
  if (!reserved || !used) {
    return Fail(ErrorCode::kInvalidArgument,
                "plan: expected fewer than 2^63 bytes, got {} requests of {} tokens",
                plan.num_requests, plan.mean_tokens);
  }
  const int64_t cache_bytes = std::max<int64_t>(0, plan.memory_bytes - model.weight_bytes);
  return Layout{block_tokens == plan.context.tokens ? "contiguous" : "paged",
                block_tokens,
                *request_bytes,
                *reserved,
                *used,
                cache_bytes / *request_bytes};
}

nlohmann::json LayoutJson(const Layout& layout) {
  return {{"block_tokens", layout.block_tokens},
          {"request_bytes", layout.request_bytes},
          {"reserved_bytes", layout.reserved_bytes},
          {"used_bytes", layout.used_bytes},
          {"empty_bytes", layout.reserved_bytes - layout.used_bytes},
          {"requests_that_fit", layout.requests_that_fit}};
}

void PrintPlan(const PlannedModel& model, const Plan& plan, const KvLayout& request,
               std::span<const Layout> layouts) {
  const auto line = [](const std::string& name, int64_t num_bytes) {
    fmt::print("  {:36} {:>20} bytes {:>12}\n", name, num_bytes, ByteText(num_bytes));
  };
  fmt::print("{}, cache in {}\n\n", ShownName(model.name), DTypeName(plan.dtype));
  line("a token", request.BytesPerToken());
  line(fmt::format("a request of {} tokens", plan.context.tokens), request.block_stride);
  line(fmt::format("{} requests", plan.num_requests), plan.num_requests * request.block_stride);
  line("the weights", model.weight_bytes);
  fmt::print(
      "\n{} requests of {} tokens on average\n\n  {:12} {:>16} {:>12} {:>12} {:>12} {:>24}\n",
      plan.num_requests, plan.mean_tokens, "", "block", "reserved", "used", "empty",
      "fit beside the weights");
  for (const Layout& layout : layouts) {
    fmt::print("  {:12} {:>16} {:>12} {:>12} {:>12} {:>24}\n", layout.name,
               fmt::format("{} tokens", layout.block_tokens), ByteText(layout.reserved_bytes),
               ByteText(layout.used_bytes), ByteText(layout.reserved_bytes - layout.used_bytes),
               fmt::format("{} in {}", layout.requests_that_fit, ByteText(plan.memory_bytes)));
  }
}

Status RunPlan(const PlanOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const PlannedModel model, ReadModel(options.model));
  KVICK_ASSIGN_OR_RETURN(const Plan plan, MakePlan(model, options));
  KVICK_ASSIGN_OR_RETURN(
      const KvLayout request,
      KvLayout::Create(model.info.KvGeometry(plan.dtype).Contiguous(1, plan.context.tokens)));
  KVICK_ASSIGN_OR_RETURN(const Layout contiguous, PlanLayout(model, plan, plan.context.tokens));
  KVICK_ASSIGN_OR_RETURN(const Layout paged, PlanLayout(model, plan, plan.block_tokens));
  const Layout layouts[] = {contiguous, paged};
  NoteContext(plan.context, model.info, "half of the memory is for the cache (-c sets it)");
  if (!options.json) {
    PrintPlan(model, plan, request, layouts);
    return {};
  }
  PrintJson({{"model", model.name},
             {"dtype", DTypeName(plan.dtype)},
             {"bytes_per_token", request.BytesPerToken()},
             {"context_tokens", plan.context.tokens},
             {"request_bytes", request.block_stride},
             {"requests", plan.num_requests},
             {"requests_bytes", plan.num_requests * request.block_stride},
             {"mean_tokens", plan.mean_tokens},
             {"weight_bytes", model.weight_bytes},
             {"memory_bytes", plan.memory_bytes},
             {"contiguous", LayoutJson(contiguous)},
             {"paged", LayoutJson(paged)}});
  return {};
}

}  // namespace

Verb AddPlan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  AddExample(app, "kvick plan llama-3-8b --requests 8 --mean-tokens 1000");
  app.add_option("-m,--model,MODEL", options->model,
                 "GGUF file, Hugging Face folder, config.json, or a name such as llama-3-8b")
      ->type_name("FILE")
      ->check(NotEmpty())
      ->required();
  app.add_option("-c,--ctx-size", options->context_tokens,
                 "maximum tokens of a request; default: the model's, as far as half of --memory "
                 "goes, as kvick generate chooses it")
      ->transform(IntAtLeast(1));
  app.add_option("--requests", options->num_requests, "requests side by side")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  app.add_option("--mean-tokens", options->mean_tokens,
                 "mean tokens of a request; default: 1000, or the context if that is less")
      ->transform(IntAtLeast(1));
  app.add_option("--block-tokens", options->block_tokens, "tokens in a block of the paged cache")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  AddSizeOption(app, "--memory", options->memory_bytes,
                "memory for weights and cache, as in 24GiB; default: what this machine has free, "
                "24GiB for a model that is only a name or a config.json");
  app.add_option("--cache-type-k", options->cache_type,
                 "number type of the cache, also -ctk; auto is that of the weights")
      ->type_name("TYPE")
      ->transform(OneOf({"auto", "bf16", "f16", "f32"}))
      ->capture_default_str();
  AddJsonFlag(app, options->json);
  return [options] { return RunPlan(*options); };
}

}  // namespace kvick::cli
