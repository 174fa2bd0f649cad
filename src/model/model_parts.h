#ifndef KVICK_MODEL_MODEL_PARTS_H_
#define KVICK_MODEL_MODEL_PARTS_H_

#include "formats/tokenizer.h"
#include "kvick/model.h"
#include "kvick/status.h"
#include "model/model_file.h"

namespace kvick {

// What a Model is made of, for the sources of this library.
struct Model::Parts {
  ModelFile file;
  Result<Tokenizer> tokenizer;  // or why there is none
  ModelInfo info;
};

}  // namespace kvick

#endif  // KVICK_MODEL_MODEL_PARTS_H_
