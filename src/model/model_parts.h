#ifndef KVICK_MODEL_MODEL_PARTS_H_
#define KVICK_MODEL_MODEL_PARTS_H_

#include <optional>

#include "formats/tokenizer.h"
#include "kvick/model.h"
#include "model/weights.h"

namespace kvick {

struct Model::Parts {
  ModelFile file;
  std::optional<Tokenizer> tokenizer;
  ModelInfo info;
};

}  // namespace kvick

#endif  // KVICK_MODEL_MODEL_PARTS_H_
