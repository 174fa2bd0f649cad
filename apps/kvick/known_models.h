#ifndef KVICK_APPS_KVICK_KNOWN_MODELS_H_
#define KVICK_APPS_KVICK_KNOWN_MODELS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace kvick::cli {

// The numbers of a published model, enough to plan for it without its file.
struct KnownModel {
  std::string_view name;
  int64_t num_layers;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t vocab_size;
  int64_t max_positions;
  bool tie_word_embeddings;
};

// Source: the config.json of each model's repository.
std::span<const KnownModel> KnownModels();

// Null where no model is called that.
const KnownModel* FindKnownModel(std::string_view name);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_KNOWN_MODELS_H_
