#ifndef KVICK_MODEL_MODEL_PARTS_H_
#define KVICK_MODEL_MODEL_PARTS_H_

#include <optional>

#include "formats/tokenizer.h"
#include "kvick/model.h"
#include "model/model_file.h"

namespace kvick {

// What a Model is made of, for the sources of this library.
struct Model::Parts {
  ModelFile file;
  std::optional<Tokenizer> tokenizer;
  ModelInfo info;
};

}  // namespace kvick

#endif  // KVICK_MODEL_MODEL_PARTS_H_
