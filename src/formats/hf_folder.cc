#include "formats/hf_folder.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/check.h"
#include "formats/error_source.h"
#include "formats/json.h"
#include "formats/quoted.h"
#include "formats/shard_index.h"

namespace kvick {
namespace {

namespace fs = std::filesystem;

// The path of a file of the folder, where it exists.
std::optional<std::string> FindFile(const std::string& folder, std::string_view name) {
  std::error_code ignored;
  const fs::path path = fs::path(folder) / name;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return path.string();
}

}  // namespace

Result<HfFolder> HfFolder::Open(const std::string& path) {
  HfFolder folder;
  KVICK_ASSIGN_OR_RETURN(folder.config_, ReadJsonObject((fs::path(path) / "config.json").string()));
  if (const auto generation = FindFile(path, "generation_config.json")) {
    KVICK_ASSIGN_OR_RETURN(folder.generation_config_, ReadJsonObject(*generation));
  }
  folder.tokenizer_path_ = FindFile(path, "tokenizer.json");
  folder.tokenizer_config_path_ = FindFile(path, "tokenizer_config.json");
  if (const auto single = FindFile(path, "model.safetensors")) {
    KVICK_RETURN_IF_ERROR(folder.OpenSingle(*single));
  } else if (const auto index = FindFile(path, "model.safetensors.index.json")) {
    KVICK_RETURN_IF_ERROR(folder.OpenShards(*index));
  } else {
    return Fail(ErrorCode::kNotFound,
                "{}: there is neither model.safetensors nor model.safetensors.index.json", path);
  }
  return folder;
}

Status HfFolder::OpenSingle(const std::string& file_path) {
  KVICK_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(file_path));
  tensors_ = file.tensors();
  files_.push_back(std::move(file));
  return {};
}

Status HfFolder::OpenShards(const std::string& index_path) {
  KVICK_ASSIGN_OR_RETURN(const ShardIndex shard_of,
                         ReadJsonFile(index_path).and_then([&](const nlohmann::json& index) {
                           return ShardIndexFromJson(index).map_error(WithSource(index_path));
                         }));
  std::map<std::string, size_t> file_idx;
  std::vector<TensorInfo> tensors;
  for (const auto& [name, shard] : shard_of) {
    const auto [place, is_new] = file_idx.emplace(shard, files_.size());
    if (is_new) {
      KVICK_ASSIGN_OR_RETURN(SafetensorsFile file,
                             SafetensorsFile::Open(fs::path(index_path).replace_filename(shard)));
      files_.push_back(std::move(file));
    }
    const SafetensorsFile& file = files_[place->second];
    const TensorInfo* tensor = file.tensors().Find(name);
    if (tensor == nullptr) {
      return Fail(ErrorCode::kCorrupt, "{}: tensor {} is missing, though the index says it is here",
                  file.source(), Quoted(name));
    }
    tensors.push_back(*tensor);
  }
  KVICK_ASSIGN_OR_RETURN(tensors_, TensorTable::Create(index_path, std::move(tensors)));
  return {};
}

}  // namespace kvick
