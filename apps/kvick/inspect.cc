// kvick inspect: what a file holds, and what a token of its cache costs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_text.h"
#include "base/check.h"
#include "cli.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "formats/json.h"
#include "formats/open_tokenizer.h"
#include "formats/quoted.h"
#include "formats/safetensors.h"
#include "formats/tokenizer_gguf.h"
#include "help.h"
#include "model/arch/read_spec.h"
#include "options.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr int64_t kShownElements = 4;  // of an array
constexpr size_t kShownBytes = 200;    // of a text that is escaped

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

// How many numbers the tensors hold, and which types hold how many bytes.
nlohmann::json ParametersJson(const TensorTable& tensors) {
  int64_t num_parameters = 0;
  nlohmann::json bytes_of_types = nlohmann::json::object();
  for (const TensorInfo& tensor : tensors.all()) {
    num_parameters += NumElements(tensor.shape).value_or(0);
    nlohmann::json& num_bytes = bytes_of_types[std::string(tensor.type_name)];
    num_bytes =
        num_bytes.is_null() ? tensor.num_bytes : num_bytes.get<int64_t>() + tensor.num_bytes;
  }
  return {{"count", num_parameters}, {"bytes_by_type", std::move(bytes_of_types)}};
}

nlohmann::json ModelJson(const ModelSpec& spec) {
  return {{"architecture", spec.architecture},
          {"layers", spec.num_layers()},
          {"hidden_size", spec.hidden_size},
          {"intermediate_size", spec.intermediate_size},
          {"heads", spec.num_heads},
          {"kv_heads", spec.num_kv_heads},
          {"head_dim", spec.head_dim},
          {"vocab_size", spec.vocab_size},
          {"context_tokens", spec.max_positions}};
}

// What one token costs in each type, and a whole context: the cache's own arithmetic.
nlohmann::json CacheJson(const ModelSpec& spec) {
  nlohmann::json object;
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    KvConfig kv;
    kv.num_layers = spec.num_layers();
    kv.num_kv_heads = spec.num_kv_heads;
    kv.head_dim = spec.head_dim;
    kv.dtype = dtype;
    const auto layout = KvLayout::Create(kv.Contiguous(1, spec.max_positions));
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

void AddSpec(const Result<ModelSpec>& spec, nlohmann::json& object) {
  if (spec) {
    object["model"] = ModelJson(*spec);
    object["cache"] = CacheJson(*spec);
  } else {
    object["model"] = {{"error", spec.error().message}};
  }
}

Result<nlohmann::json> InspectGguf(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const std::string parts = file.num_parts() > 1 ? fmt::format(", {} files", file.num_parts()) : "";
  nlohmann::json object = {{"format", fmt::format("GGUF v{}{}", file.version(), parts)}};
  nlohmann::json metadata = nlohmann::json::array();
  for (const GgufEntry& entry : file.metadata()) {
    metadata.push_back({std::string(entry.key), GgufValueText(entry.value, kShownElements)});
  }
  object["metadata"] = std::move(metadata);
  object["tensors"] = TensorsJson(file.tensors());
  object["parameters"] = ParametersJson(file.tensors());
  object["tokenizer"] = TokenizerJson(TokenizerFromGguf(file));
  AddSpec(ModelSpecFromGguf(file), object);
  return object;
}

// A value of config.json as the file spells it: with NaN and Infinity, which JSON has no words for.
std::string ValueText(const nlohmann::json& value) {
  if (!value.is_structured()) return value.is_number_float() ? JsonText(value) : value.dump();
  std::vector<std::string> members;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_object() ? nlohmann::json(key).dump() + ":" : "";
    members.push_back(name + ValueText(member));
  }
  const std::string list = fmt::format("{}", fmt::join(members, ","));
  return value.is_object() ? "{" + list + "}" : "[" + list + "]";
}

Result<nlohmann::json> InspectFolder(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  nlohmann::json object = {{"format", "Hugging Face folder"}};
  nlohmann::json metadata = nlohmann::json::array();
  for (const auto& [key, value] : folder.config().items())
    metadata.push_back({key, ValueText(value)});
  object["metadata"] = std::move(metadata);
  object["tensors"] = TensorsJson(folder.tensors());
  object["parameters"] = ParametersJson(folder.tensors());
  object["tokenizer"] = TokenizerJson(OpenTokenizer(path));
  AddSpec(ModelSpecFromHf(folder.config(), folder.FilePath("config.json")), object);
  return object;
}

Result<nlohmann::json> InspectSafetensors(const std::string& path) {
  KVICK_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  nlohmann::json metadata = nlohmann::json::array();
  for (const auto& [key, value] : file.metadata()) metadata.push_back({key, value});
  return nlohmann::json{{"format", "safetensors"},
                        {"metadata", std::move(metadata)},
                        {"tensors", TensorsJson(file.tensors())},
                        {"parameters", ParametersJson(file.tensors())}};
}

Result<nlohmann::json> Inspect(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return InspectFolder(path);
  if (std::filesystem::path(path).extension() == ".safetensors") return InspectSafetensors(path);
  return InspectGguf(path);
}

// A text of the file, escaped where it holds what a terminal would obey.
std::string Shown(const nlohmann::json& value) {
  const auto& text = value.get_ref<const std::string&>();
  return IsPrintable(text) ? text : Quoted(text, kShownBytes);
}

std::string ShapeOf(const nlohmann::json& tensor) {
  return ShapeText(tensor["shape"].get<std::vector<int64_t>>());
}

void PrintMetadata(const nlohmann::json& metadata) {
  fmt::print("\nmetadata\n");
  for (const nlohmann::json& entry : metadata) {
    fmt::print("  {} = {}\n", Shown(entry[0]), Shown(entry[1]));
  }
}

void PrintTensors(const nlohmann::json& tensors) {
  int64_t num_bytes = 0;
  for (const nlohmann::json& tensor : tensors) num_bytes += tensor["bytes"].get<int64_t>();
  fmt::print("\ntensors: {}, {} ({} bytes)\n", tensors.size(), ByteText(num_bytes), num_bytes);
  for (const nlohmann::json& tensor : tensors) {
    fmt::print("  {:48} {:6} {:20} {:>14}\n", Shown(tensor["name"]), Shown(tensor["type"]),
               ShapeOf(tensor), tensor["bytes"].get<int64_t>());
  }
}

void PrintParameters(const nlohmann::json& parameters) {
  fmt::print("\nparameters: {}\n", parameters["count"].get<int64_t>());
  for (const auto& [type, num_bytes] : parameters["bytes_by_type"].items()) {
    fmt::print("  {:6} {:>15} bytes\n", type, num_bytes.get<int64_t>());
  }
}

void PrintModel(const nlohmann::json& object) {
  const nlohmann::json& model = object["model"];
  if (model.contains("error")) {
    fmt::print("\nmodel: cannot be run: {}\n", model["error"].get<std::string>());
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

std::string TokenizerText(const nlohmann::json& tokenizer) {
  if (tokenizer.is_null()) return "none";
  if (tokenizer.contains("error")) {
    return "cannot be used: " + tokenizer["error"].get<std::string>();
  }
  return fmt::format("{} tokens, BOS {}, EOS {}", tokenizer["tokens"].get<int64_t>(),
                     tokenizer["bos_id"].dump(), tokenizer["eos_ids"].dump());
}

void PrintReport(const nlohmann::json& object) {
  fmt::print("{}\n", object["format"].get<std::string>());
  PrintMetadata(object["metadata"]);
  PrintTensors(object["tensors"]);
  PrintParameters(object["parameters"]);
  if (object.contains("tokenizer")) {
    const nlohmann::json& tokenizer = object["tokenizer"];
    fmt::print("\ntokenizer: {}\n", TokenizerText(tokenizer));
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
  AddExample(app, "kvick inspect model.gguf");
  app.add_option("-m,--model,MODEL", options->path,
                 "GGUF file, .safetensors file or Hugging Face folder")
      ->type_name("FILE")
      ->check(NotEmpty())
      ->required();
  AddJsonFlag(app, options->json);
  return [options] { return RunInspect(*options); };
}

}  // namespace kvick::cli
