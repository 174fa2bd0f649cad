#ifndef KVICK_APPS_KVICK_BENCHED_MODEL_H_
#define KVICK_APPS_KVICK_BENCHED_MODEL_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kvick/model.h"
#include "kvick/status.h"
#include "model/random_model.h"

namespace kvick::cli {

// Which model is measured: a file, or random weights of a known model's sizes.
struct BenchedModelOptions {
  std::string path{};
  std::string geometry;  // empty, and no path: the model in the box
  int64_t num_layers = 4;
  int64_t vocab_size = 0;  // 0: the geometry's
  std::string type = "bf16";

  void AddTo(CLI::App& app);
};

class BenchedModel {
 public:
  // Errors: as Model::Open, RandomModel::Create.
  static Result<BenchedModel> Create(const BenchedModelOptions& options, int num_threads);

  const Model& get() const { return random_ ? random_->model() : *opened_; }
  // Tokens that a sequence can have: those that a file says. Random weights say nothing.
  int64_t context_tokens() const;

 private:
  std::unique_ptr<Model> opened_;
  std::optional<RandomModel> random_;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_BENCHED_MODEL_H_
