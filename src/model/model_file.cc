#include "model/model_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace kvick {
namespace {

// The tokens that end a text are for generation_config.json to say, where it does:
// instruction-tuned models end a turn there that config.json knows nothing of.
Result<LlamaConfig> ConfigOf(const HfFolder& folder) {
  constexpr const char* kEnds = "eos_token_id";
  const nlohmann::json& generation = folder.generation_config();
  if (!generation.contains(kEnds) || generation[kEnds].is_null()) {
    return LlamaConfigFromHf(folder.config());
  }
  nlohmann::json config = folder.config();
  config[kEnds] = generation[kEnds];
  return LlamaConfigFromHf(config);
}

}  // namespace

ModelFile::ModelFile(File file, LlamaConfig config, ModelWeights weights)
    : file_(std::move(file)), config_(std::move(config)), weights_(std::move(weights)) {}

Result<ModelFile> ModelFile::Open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    KVICK_ASSIGN_OR_RETURN(HfFolder folder, HfFolder::Open(path));
    KVICK_ASSIGN_OR_RETURN(LlamaConfig config, ConfigOf(folder));
    KVICK_ASSIGN_OR_RETURN(
        ModelWeights weights,
        BindWeights({path, WeightNames::kHuggingFace, folder.tensors()}, config));
    return ModelFile(std::move(folder), std::move(config), std::move(weights));
  }
  KVICK_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  return FromGguf(std::move(file));
}

Result<ModelFile> ModelFile::Parse(std::span<const std::byte> gguf, const std::string& source) {
  KVICK_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Parse(gguf, source));
  return FromGguf(std::move(file));
}

Result<ModelFile> ModelFile::FromGguf(GgufFile file) {
  KVICK_ASSIGN_OR_RETURN(LlamaConfig config, LlamaConfigFromGguf(file));
  KVICK_ASSIGN_OR_RETURN(ModelWeights weights,
                         BindWeights({file.source(), WeightNames::kGguf, file.tensors()}, config));
  return ModelFile(std::move(file), std::move(config), std::move(weights));
}

}  // namespace kvick
