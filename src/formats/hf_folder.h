#ifndef KVICK_FORMATS_HF_FOLDER_H_
#define KVICK_FORMATS_HF_FOLDER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "formats/tensor_info.h"
#include "kvick/status.h"

namespace kvick {

// A model as Hugging Face lays it out:
//
//   config.json
//   model.safetensors, or model.safetensors.index.json and the shards that it names
//   generation_config.json, tokenizer.json, tokenizer_config.json (each may be absent)
//
// Move-only; the tensors lie in the mapped files and live as long as this does.
class HfFolder {
 public:
  // Errors: not_found, io: a file that must be there;  corrupt: a damaged one, a shard outside of
  // the folder, a tensor that is not in the shard that the index names.
  static Result<HfFolder> Open(const std::string& path);

  const nlohmann::json& config() const { return config_; }  // an object
  // An object, empty where there is no such file.
  const nlohmann::json& generation_config() const { return generation_config_; }
  // Of one file: all of its tensors. Of shards: those that the index lists.
  const TensorTable& tensors() const { return tensors_; }
  // nullopt where there is no such file.
  const std::optional<std::string>& tokenizer_path() const { return tokenizer_path_; }
  const std::optional<std::string>& tokenizer_config_path() const { return tokenizer_config_path_; }

 private:
  HfFolder() = default;

  Status OpenSingle(const std::string& file_path);
  Status OpenShards(const std::string& index_path);

  nlohmann::json config_;
  nlohmann::json generation_config_ = nlohmann::json::object();
  std::vector<SafetensorsFile> files_;
  TensorTable tensors_;
  std::optional<std::string> tokenizer_path_;
  std::optional<std::string> tokenizer_config_path_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_HF_FOLDER_H_
