#include "formats/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/check.h"
#include "formats/json.h"
#include "formats/quoted.h"

namespace kvick {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The path of a file of the folder, where it exists.
std::optional<std::string> FindFile(const std::string& folder, std::string_view name) {
  std::error_code ignored;
  const fs::path path = fs::path(folder) / name;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return path.string();
}

// A name that cannot lead out of the folder: no separators, nothing hidden, printable.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c < 0x7f && c != '/' && c != '\\';
  });
}

// tensor name -> shard file name.
Result<std::map<std::string, std::string>> ReadWeightMap(const std::string& index_path) {
  KVICK_ASSIGN_OR_RETURN(const Json index, ReadJsonFile(index_path));
  const auto weight_map = index.is_object() ? index.find("weight_map") : index.end();
  if (weight_map == index.end() || !weight_map->is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: there is no object weight_map", index_path);
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return Fail(ErrorCode::kCorrupt,
                  "{}: tensor {} is in {}, a file name of this folder is wanted", index_path,
                  Quoted(tensor), JsonText(shard));
    }
    shard_of.emplace(tensor, shard.get<std::string>());
  }
  return shard_of;
}

}  // namespace

Result<Json> ReadConfigJson(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const std::string file_path = is_folder ? (fs::path(path) / "config.json").string() : path;
  KVICK_ASSIGN_OR_RETURN(Json config, ReadJsonFile(file_path));
  if (!config.is_object()) {
    return Fail(ErrorCode::kCorrupt, "{}: the text is {}, an object is wanted", file_path,
                JsonText(config));
  }
  return config;
}

Result<HfFolder> HfFolder::Open(const std::string& path) {
  HfFolder folder;
  folder.path_ = path;
  KVICK_ASSIGN_OR_RETURN(folder.config_, ReadConfigJson(path));
  if (const auto generation = FindFile(path, "generation_config.json")) {
    KVICK_ASSIGN_OR_RETURN(folder.generation_config_, ReadConfigJson(*generation));
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
  KVICK_ASSIGN_OR_RETURN(const auto shard_of, ReadWeightMap(index_path));
  std::map<std::string, size_t> file_idx;
  std::vector<TensorInfo> tensors;
  for (const auto& [name, shard] : shard_of) {
    const auto [place, is_new] = file_idx.emplace(shard, files_.size());
    if (is_new) {
      KVICK_ASSIGN_OR_RETURN(SafetensorsFile file,
                             SafetensorsFile::Open((fs::path(path_) / shard).string()));
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
