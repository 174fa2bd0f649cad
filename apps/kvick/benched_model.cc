#include "benched_model.h"

#include "base/check.h"
#include "bench.h"
#include "demo_model.h"
#include "known_models.h"
#include "model/llama_config.h"
#include "options.h"

namespace kvick::cli {

void BenchedModelOptions::AddTo(CLI::App& app) {
  auto* model = AddModelOption(app, path);
  AddGeometryOption(app, geometry)->excludes(model);
  app.add_option("--layers", num_layers, "layers of the random model")
      ->transform(IntFrom(1, 1024))
      ->excludes(model)
      ->capture_default_str();
  app.add_option("--vocab", vocab_size, "vocabulary of the random model; default: the geometry's")
      ->transform(IntFrom(1, 1 << 24))
      ->excludes(model);
  AddWeightTypeOption(app, type)->excludes(model);
}

Result<BenchedModel> BenchedModel::Create(const BenchedModelOptions& options, int num_threads) {
  BenchedModel model;
  if (!options.path.empty() || options.geometry.empty()) {
    KVICK_ASSIGN_OR_RETURN(model.opened_, OpenModel(options.path));
    return model;
  }
  const KnownModel& known = *FindKnownModel(options.geometry);
  LlamaConfig config;
  config.num_layers = options.num_layers;
  config.hidden_size = known.hidden_size;
  config.intermediate_size = known.intermediate_size;
  config.num_heads = known.num_heads;
  config.num_kv_heads = known.num_kv_heads;
  config.head_dim = known.head_dim;
  config.vocab_size = options.vocab_size > 0 ? options.vocab_size : known.vocab_size;
  config.max_positions = known.max_positions;
  config.tie_word_embeddings = known.tie_word_embeddings;
  KVICK_ASSIGN_OR_RETURN(model.random_,
                         RandomModel::Create(config, ParseWeightType(options.type), num_threads));
  return model;
}

int64_t BenchedModel::context_tokens() const {
  return random_ ? kMaxTokens : opened_->info().max_positions;
}

}  // namespace kvick::cli
