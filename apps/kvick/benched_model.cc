#include "benched_model.h"

#include "base/check.h"
#include "bench.h"
#include "demo_model.h"
#include "known_models.h"
#include "model/model_spec.h"
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
  ModelSpec spec;
  spec.layers.resize(static_cast<size_t>(options.num_layers));
  spec.hidden_size = known.hidden_size;
  spec.intermediate_size = known.intermediate_size;
  spec.num_heads = known.num_heads;
  spec.num_kv_heads = known.num_kv_heads;
  spec.head_dim = known.head_dim;
  spec.vocab_size = options.vocab_size > 0 ? options.vocab_size : known.vocab_size;
  spec.max_positions = known.max_positions;
  spec.tie_word_embeddings = known.tie_word_embeddings;
  KVICK_ASSIGN_OR_RETURN(model.random_,
                         RandomModel::Create(spec, ParseWeightType(options.type), num_threads));
  return model;
}

int64_t BenchedModel::context_tokens() const {
  return random_ ? kMaxTokens : opened_->info().max_positions;
}

}  // namespace kvick::cli
