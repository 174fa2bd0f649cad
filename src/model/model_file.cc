#include "model/model_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "model/arch/read_spec.h"

namespace kvick {
namespace {

// Where generation_config.json names the end-of-sequence tokens, they are those, and not
// config.json's: of an instruction-tuned model it is the file that knows of the end of a turn.
Result<ModelSpec> SpecOf(const HfFolder& folder) {
  constexpr std::string_view kGenerationName = "generation_config.json";
  KVICK_ASSIGN_OR_RETURN(ModelSpec spec,
                         ModelSpecFromHf(folder.config(), folder.FilePath("config.json")));
  KVICK_ASSIGN_OR_RETURN(auto eos_ids, EosIdsFromHf(folder.generation_config(), spec.vocab_size,
                                                    folder.FilePath(kGenerationName)));
  if (eos_ids) spec.eos_ids = *std::move(eos_ids);
  return spec;
}

// A user may give one file of a folder for the folder.
Status CheckNotPartOfFolder(const std::string& path) {
  const std::filesystem::path file(path);
  if (file.extension() != ".safetensors" && file.extension() != ".json") return {};
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return Fail(ErrorCode::kInvalidArgument,
              "{}: expected a GGUF file or a Hugging Face folder, got a file of a folder: give the "
              "folder, {}",
              path, folder);
}

}  // namespace

ModelFile::ModelFile(File file, ModelSpec spec, ModelWeights weights)
    : file_(std::move(file)), spec_(std::move(spec)), weights_(std::move(weights)) {}

Result<ModelFile> ModelFile::Open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    KVICK_ASSIGN_OR_RETURN(HfFolder folder, HfFolder::Open(path));
    KVICK_ASSIGN_OR_RETURN(ModelSpec spec, SpecOf(folder));
    KVICK_ASSIGN_OR_RETURN(ModelWeights weights,
                           BindWeights({folder.tensors_path(), folder.tensors()}, spec));
    return ModelFile(std::move(folder), std::move(spec), std::move(weights));
  }
  if (std::filesystem::exists(path, ignored)) KVICK_RETURN_IF_ERROR(CheckNotPartOfFolder(path));
  KVICK_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  return FromGguf(std::move(file));
}

Result<ModelFile> ModelFile::Parse(std::span<const std::byte> gguf, const std::string& source) {
  KVICK_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Parse(gguf, source));
  return FromGguf(std::move(file));
}

Result<ModelFile> ModelFile::FromGguf(GgufFile file) {
  KVICK_ASSIGN_OR_RETURN(ModelSpec spec, ModelSpecFromGguf(file));
  KVICK_ASSIGN_OR_RETURN(ModelWeights weights, BindWeights({file.source(), file.tensors()}, spec));
  return ModelFile(std::move(file), std::move(spec), std::move(weights));
}

}  // namespace kvick
