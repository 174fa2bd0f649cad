// kvick bench: how near the kernels come to the limits of this machine.

#include "bench.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "help.h"
#include "known_models.h"
#include "options.h"

namespace kvick::cli {

void BenchOptions::AddTo(CLI::App& app) {
  AddExecOptions(app, exec);
  AddTimingTo(app);
}

void BenchOptions::AddTimingTo(CLI::App& app) {
  app.add_option("--seconds", row_seconds, "how long each row is measured")
      ->transform(RealFrom(0, 3600))
      ->capture_default_str();
  AddSizeOption(app, "--working-set", working_set_bytes,
                "data that passes go through, as in 4GiB; default: 1GiB, or twice the last-level "
                "caches if that is more, so that data come from memory");
  AddJsonFlag(app, json);
  AddStrictFlag(app, strict);
}

CLI::Option* AddStrictFlag(CLI::App& app, bool& strict) {
  return app.add_flag("--strict", strict, "exit with code 3 if a row cannot be trusted");
}

CLI::Option* AddGeometryOption(CLI::App& app, std::string& name) {
  std::vector<std::string> names;
  for (const KnownModel& model : KnownModels()) names.emplace_back(model.name);
  return app.add_option("--geometry", name, "known model whose sizes are used")
      ->type_name("NAME")
      ->transform(OneOf(std::move(names)))
      ->capture_default_str();
}

CLI::Option* AddWeightTypeOption(CLI::App& app, std::string& name) {
  std::vector<std::string> names;
  for (const WeightFormat& format : AllWeightFormats()) names.emplace_back(format.name);
  return app.add_option("--type", name, "format of the weights")
      ->type_name("TYPE")
      ->transform(OneOf(std::move(names)))
      ->capture_default_str();
}

CLI::Option* AddCacheTypeOption(CLI::App& app, std::string& name) {
  return app.add_option("--cache-type-k", name, "number type of the cache, also -ctk")
      ->type_name("TYPE")
      ->transform(OneOf({"bf16", "f16", "f32"}))
      ->capture_default_str();
}

WeightType ParseWeightType(std::string_view name) {
  const WeightFormat* format = FindWeightFormat(name);
  KVICK_CHECK(format != nullptr);
  return format->type;
}

DType ParseDType(std::string_view name) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  KVICK_CHECK(false && "no such number type");
  return DType::kF32;
}

Verb AddBench(CLI::App& app) {
  app.require_subcommand(1);
  AddExample(app, "kvick bench attention --context 16384");
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  const auto add = [&](const char* name, const char* job, Verb (*add_options)(CLI::App&)) {
    CLI::App* verb = app.add_subcommand(name, job);
    verbs.emplace_back(verb, add_options(*verb));
  };
  add("limits", "Read bandwidth and peaks of multiplication of this machine, now.", AddBenchLimits);
  add("attention", "Decode and prefill over a cache, contiguous and paged.", AddBenchAttention);
  add("linear", "Tokens times a weight matrix.", AddBenchLinear);
  add("model", "Prefill and decode of a whole model.", AddBenchModel);
  add("append", "A new token in all layers, against concatenation and memcpy.", AddBenchAppend);
  add("serving", "Many requests in a fixed amount of memory, paged and preallocated.",
      AddBenchServing);
  add("compare", "Two runs side by side, from files of --json.", AddBenchCompare);
  return [verbs = std::move(verbs)]() -> Outcome {
    for (const auto& [verb, run] : verbs) {
      if (verb->parsed()) return run();
    }
    KVICK_CHECK(false && "a subcommand is required");
    return Status();
  };
}

}  // namespace kvick::cli
