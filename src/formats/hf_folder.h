#ifndef KVICK_FORMATS_HF_FOLDER_H_
#define KVICK_FORMATS_HF_FOLDER_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "formats/tensor_info.h"
#include "kvick/status.h"

namespace kvick {

// A model as Hugging Face lays it out:
//
//   config.json
//   model.safetensors, or model.safetensors.index.json and the shards that it names
//   generation_config.json (may be absent)
//
// The tokenizer's files are not read here: see OpenTokenizer.
// Move-only; the tensors lie in the mapped files and live as long as this does.
class HfFolder {
 public:
  // Errors: not_found, io: a file that must be there;  corrupt: a damaged one, a Git LFS pointer,
  // a shard outside of the folder, a tensor that is not in the shard that the index names.
  static Result<HfFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // Where a file of that name is, or would be.
  std::string FilePath(std::string_view name) const;

  const nlohmann::json& config() const { return config_; }  // an object
  // An object, empty where there is no such file.
  const nlohmann::json& generation_config() const { return generation_config_; }
  // Of one file: all of its tensors. Of shards: those that the index lists.
  const TensorTable& tensors() const { return tensors_; }
  // The path of model.safetensors, or of the index: what names the tensors in messages.
  const std::string& tensors_path() const { return tensors_path_; }

 private:
  explicit HfFolder(std::string path) : path_(std::move(path)) {}

  Status OpenTensors();
  Status OpenSingle(const std::string& file_path);
  Status OpenShards(const std::string& index_path);

  std::string path_;
  nlohmann::json config_;
  nlohmann::json generation_config_ = nlohmann::json::object();
  std::vector<SafetensorsFile> files_;
  std::string tensors_path_;
  TensorTable tensors_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_HF_FOLDER_H_
