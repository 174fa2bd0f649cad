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

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::string HfFolder::FilePath(std::string_view name) const { return fs::path(path_) / name; }

Result<HfFolder> HfFolder::Open(const std::string& path) {
  HfFolder folder(path);
  KVICK_ASSIGN_OR_RETURN(folder.config_, ReadJsonObject(folder.FilePath("config.json")));
  const std::string generation = folder.FilePath("generation_config.json");
  if (Exists(generation)) {
    KVICK_ASSIGN_OR_RETURN(folder.generation_config_, ReadJsonObject(generation));
  }
  KVICK_RETURN_IF_ERROR(folder.OpenTensors());
  return folder;
}

Status HfFolder::OpenTensors() {
  tensors_path_ = FilePath(kSingleName);
  if (Exists(tensors_path_)) return OpenSingle(tensors_path_);
  tensors_path_ = FilePath(kIndexName);
  if (Exists(tensors_path_)) return OpenShards(tensors_path_);
  return Fail(ErrorCode::kNotFound, "{}: expected {} or {}, got neither", path_, kSingleName,
              kIndexName);
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
      return Fail(ErrorCode::kCorrupt,
                  "{}: tensor {} is missing, although {} names this file for it", file.source(),
                  Quoted(name), kIndexName);
    }
    tensors.push_back(*tensor);
  }
  KVICK_ASSIGN_OR_RETURN(tensors_, TensorTable::Create(index_path, std::move(tensors)));
  return {};
}

}  // namespace kvick
