#ifndef KVICK_MODEL_RANDOM_MODEL_H_
#define KVICK_MODEL_RANDOM_MODEL_H_

#include <memory>
#include <utility>

#include "base/memory.h"
#include "kvick/model.h"
#include "kvick/status.h"
#include "model/model_spec.h"
#include "quant/weight_format.h"

namespace kvick {

// A Llama with random weights and without a tokenizer, for measurements of speed. It is a GGUF file
// in memory, and is opened like one.
class RandomModel {
 public:
  // The sizes of `spec`, and whether the output is the embedding; the rest of it is not read.
  // Cost: the weights are made on num_threads threads, a second for some 10^9.
  // Errors: exhausted: not that much memory;  corrupt: sizes that no tensor has.
  static Result<RandomModel> Create(const ModelSpec& spec, WeightType type, int num_threads);

  const Model& model() const { return *model_; }

 private:
  RandomModel(MappedRegion gguf, std::unique_ptr<Model> model)
      : gguf_(std::move(gguf)), model_(std::move(model)) {}

  MappedRegion gguf_;
  std::unique_ptr<Model> model_;  // points into gguf_
};

}  // namespace kvick

#endif  // KVICK_MODEL_RANDOM_MODEL_H_
