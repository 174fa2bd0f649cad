// kvick inspect: what a file holds, and what a token of its cache costs.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/check.h"
#include "cli.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "formats/open_tokenizer.h"
#include "formats/quoted.h"
#include "formats/safetensors.h"
#include "formats/tokenizer_gguf.h"
#include "model/llama_config.h"

namespace kvick::cli {
namespace {

constexpr int64_t kShownElements = 4;  // of an array

struct InspectOptions {
  std::string path;
  bool json = false;
};

nlohmann::json TensorsJson(const TensorTable& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const TensorInfo& tensor : tensors.all()) {
    list.push_back({{"name", tensor.name},
                    {"type", tensor.type_name},
                    {"shape", tensor.shape},
                    {"bytes", tensor.num_bytes}});
  }
  return list;
}

nlohmann::json ModelJson(const LlamaConfig& config) {
  return {{"architecture", config.architecture},
          {"layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"heads", config.num_heads},
          {"kv_heads", config.num_kv_heads},
          {"head_dim", config.head_dim},
          {"vocab_size", config.vocab_size},
          {"context_tokens", config.max_positions}};
}

// What one token costs in each type, and a whole context: the cache's own arithmetic.
nlohmann::json CacheJson(const LlamaConfig& config) {
  nlohmann::json object;
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    KvConfig kv;
    kv.num_layers = config.num_layers;
    kv.num_kv_heads = config.num_kv_heads;
    kv.head_dim = config.head_dim;
    kv.dtype = dtype;
    const auto layout = KvLayout::Create(kv.Contiguous(1, config.max_positions));
    if (!layout) continue;
    object[std::string(DTypeName(dtype))] = {{"bytes_per_token", layout->BytesPerToken()},
                                             {"bytes_per_context", layout->block_stride}};
  }
  return object;
}

nlohmann::json TokenizerJson(const Result<Tokenizer>& tokenizer) {
  if (!tokenizer) {
    if (tokenizer.error().code == ErrorCode::kNotFound) return nullptr;
    return {{"error", tokenizer.error().message}};
  }
  nlohmann::json object = {{"tokens", tokenizer->vocab_size()}, {"eos_ids", tokenizer->eos_ids()}};
  object["bos_id"] = tokenizer->bos_id() ? nlohmann::json(*tokenizer->bos_id()) : nullptr;
  return object;
}

void AddConfig(const Result<LlamaConfig>& config, nlohmann::json& object) {
  if (config) {
    object["model"] = ModelJson(*config);
    object["cache"] = CacheJson(*config);
  } else {
    object["model"] = {{"error", config.error().message}};
  }
}

Result<nlohmann::json> InspectGguf(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  nlohmann::json object = {{"format", fmt::format("GGUF v{}", file.version())}};
  nlohmann::json metadata = nlohmann::json::array();
  for (const GgufEntry& entry : file.metadata()) {
    metadata.push_back({std::string(entry.key), GgufValueText(entry.value, kShownElements)});
  }
  object["metadata"] = std::move(metadata);
  object["tensors"] = TensorsJson(file.tensors());
  object["tokenizer"] = TokenizerJson(TokenizerFromGguf(file));
  AddConfig(LlamaConfigFromGguf(file), object);
  return object;
}

Result<nlohmann::json> InspectFolder(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  nlohmann::json object = {{"format", "Hugging Face folder"}};
  nlohmann::json metadata = nlohmann::json::array();
  for (const auto& [key, value] : folder.config().items()) metadata.push_back({key, value.dump()});
  object["metadata"] = std::move(metadata);
  object["tensors"] = TensorsJson(folder.tensors());
  object["tokenizer"] = TokenizerJson(OpenTokenizer(path));
  AddConfig(LlamaConfigFromHf(folder.config(), folder.FilePath("config.json")), object);
  return object;
}

Result<nlohmann::json> InspectSafetensors(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  nlohmann::json metadata = nlohmann::json::array();
  for (const auto& [key, value] : file.metadata()) metadata.push_back({key, value});
  return nlohmann::json{{"format", "safetensors"},
                        {"metadata", std::move(metadata)},
                        {"tensors", TensorsJson(file.tensors())}};
}

Result<nlohmann::json> Inspect(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return InspectFolder(path);
  if (std::filesystem::path(path).extension() == ".safetensors") return InspectSafetensors(path);
  return InspectGguf(path);
}

// Names in files may be terminal commands: escaped, without the quotes.
std::string Plain(const nlohmann::json& text) {
  const std::string quoted = Quoted(text.get_ref<const std::string&>());
  return quoted.substr(1, quoted.size() - 2);
}

std::string ShapeOf(const nlohmann::json& tensor) {
  return ShapeText(tensor["shape"].get<std::vector<int64_t>>());
}

void PrintMetadata(const nlohmann::json& metadata) {
  fmt::print("\nmetadata\n");
  for (const nlohmann::json& entry : metadata) {
    fmt::print("  {} = {}\n", Plain(entry[0]), Plain(entry[1]));
  }
}

void PrintTensors(const nlohmann::json& tensors) {
  int64_t num_bytes = 0;
  for (const nlohmann::json& tensor : tensors) num_bytes += tensor["bytes"].get<int64_t>();
  fmt::print("\ntensors: {}, {} bytes\n", tensors.size(), num_bytes);
  for (const nlohmann::json& tensor : tensors) {
    fmt::print("  {:48} {:6} {:20} {:>14}\n", Plain(tensor["name"]), Plain(tensor["type"]),
               ShapeOf(tensor), tensor["bytes"].get<int64_t>());
  }
}

void PrintModel(const nlohmann::json& object) {
  const nlohmann::json& model = object["model"];
  if (model.contains("error")) {
    fmt::print("\nmodel: {}\n", model["error"].get<std::string>());
    return;
  }
  fmt::print("\nmodel\n");
  for (const auto& [key, value] : model.items()) fmt::print("  {:18} {}\n", key, value.dump());
  fmt::print("\ncache      bytes a token   bytes a context of {}\n",
             model["context_tokens"].get<int64_t>());
  for (const auto& [dtype, cost] : object["cache"].items()) {
    fmt::print("  {:6} {:>15} {:>23}\n", dtype, cost["bytes_per_token"].get<int64_t>(),
               cost["bytes_per_context"].get<int64_t>());
  }
}

void PrintReport(const nlohmann::json& object) {
  fmt::print("{}\n", object["format"].get<std::string>());
  PrintMetadata(object["metadata"]);
  PrintTensors(object["tensors"]);
  if (object.contains("tokenizer")) {
    const nlohmann::json& tokenizer = object["tokenizer"];
    fmt::print("\ntokenizer: {}\n", tokenizer.is_null() ? "none" : tokenizer.dump());
  }
  if (object.contains("model")) PrintModel(object);
}

Status RunInspect(const InspectOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const nlohmann::json object, Inspect(options.path));
  options.json ? PrintJson(object) : PrintReport(object);
  return {};
}

}  // namespace

Verb AddInspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  app.add_option("path", options->path, "GGUF file, .safetensors file or Hugging Face folder")
      ->required();
  app.add_flag("--json", options->json, "print one JSON object");
  app.footer("Example: kvick inspect model.gguf");
  return [options] { return RunInspect(*options); };
}

}  // namespace kvick::cli
