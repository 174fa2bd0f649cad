#ifndef KVICK_FORMATS_SAFETENSORS_H_
#define KVICK_FORMATS_SAFETENSORS_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "base/memory.h"
#include "formats/tensor_info.h"
#include "kvick/status.h"

namespace kvick {

// A safetensors file, checked as a whole when it is opened: every type, shape and offset agrees
// with the file's real size. The tensors' bytes are not read. Move-only; the tensors lie in the
// mapping and live as long as this does.
//
//   file = u64 header length, header, bytes
//   header = JSON {name: {"dtype", "shape", "data_offsets": [begin, end)}}, "__metadata__": strings
//
// Source  https://github.com/huggingface/safetensors (format section of the README)
class SafetensorsFile {
 public:
  // Errors: not_found, io; corrupt; unsupported: a type that the format has gained since.
  static Result<SafetensorsFile> Open(const std::string& path);
  // `bytes` must outlive the file. `source` names them in messages.
  static Result<SafetensorsFile> Parse(std::span<const std::byte> bytes,
                                       std::string source = "safetensors");

  const std::string& source() const { return source_; }
  const TensorTable& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  SafetensorsFile() = default;

  std::string source_;
  MappedFile mapping_;  // empty after Parse
  TensorTable tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace kvick

#endif  // KVICK_FORMATS_SAFETENSORS_H_
