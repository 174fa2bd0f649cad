#ifndef KVICK_MODEL_MODEL_FILE_H_
#define KVICK_MODEL_MODEL_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <variant>

#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "kvick/status.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace kvick {

// An opened model: its numbers, its weights, and the file or folder that they lie in.
// Move-only; views of the weights live as long as this does, wherever it is moved.
class ModelFile {
 public:
  // A GGUF file, or a Hugging Face folder. Takes no memory in proportion to the weights.
  // Errors: not_found, io, corrupt, unsupported; invalid_argument: a file of a folder.
  static Result<ModelFile> Open(const std::string& path);
  // A GGUF file that lies in memory, which must outlive it. `source` names it in messages.
  static Result<ModelFile> Parse(std::span<const std::byte> gguf, const std::string& source);

  const ModelSpec& spec() const { return spec_; }
  const ModelWeights& weights() const { return weights_; }
  // Exactly one of the two is not null.
  const GgufFile* gguf() const { return std::get_if<GgufFile>(&file_); }
  const HfFolder* hf_folder() const { return std::get_if<HfFolder>(&file_); }

 private:
  using File = std::variant<GgufFile, HfFolder>;

  ModelFile(File file, ModelSpec spec, ModelWeights weights);
  static Result<ModelFile> FromGguf(GgufFile file);

  File file_;
  ModelSpec spec_;
  ModelWeights weights_;
};

}  // namespace kvick

#endif  // KVICK_MODEL_MODEL_FILE_H_
