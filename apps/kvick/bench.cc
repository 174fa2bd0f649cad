// kvick bench: how near the kernels come to the limits of this machine.

#include "bench.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "known_models.h"

namespace kvick::cli {

void BenchOptions::AddTo(CLI::App& app) {
  app.add_option("--isa", isa, "implementation of the kernels; `kvick --version` lists them")
      ->capture_default_str();
  app.add_option("-t,--threads", num_threads, "default: all cores that the process may use")
      ->check(CLI::Range(1, 1024));
  AddTimingTo(app);
}

void BenchOptions::AddTimingTo(CLI::App& app) {
  app.add_option("--seconds", row_seconds, "how long each row is timed")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  AddSizeOption(app, "--working-set", working_set_bytes,
                "bytes that passes go through, as in 4GiB; default: 1 GiB, or twice the "
                "last-level caches where that is more, so that data come from memory");
  app.add_flag("--json", json, "print one JSON object");
}

CLI::Option* AddGeometryOption(CLI::App& app, std::string& name) {
  std::vector<std::string> names;
  for (const KnownModel& model : KnownModels()) names.emplace_back(model.name);
  return app.add_option("--geometry", name, "numbers of heads and sizes, of a known model")
      ->check(CLI::IsMember(std::move(names)))
      ->capture_default_str();
}

CLI::Option* AddWeightTypeOption(CLI::App& app, std::string& name) {
  return app.add_option("--type", name, "number type of the weights")
      ->check(CLI::IsMember({"bf16", "f16", "f32", "q8_0"}))
      ->capture_default_str();
}

CLI::Option* AddCacheTypeOption(CLI::App& app, std::string& name) {
  return app.add_option("--cache-type-k", name, "-ctk: number type of the cache")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
}

DType ParseDType(std::string_view name) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kQ8_0}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  KVICK_CHECK(false && "no such number type");
  return DType::kF32;
}

Verb AddBench(CLI::App& app) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  const auto add = [&](const char* name, const char* job, Verb (*add_options)(CLI::App&)) {
    CLI::App* verb = app.add_subcommand(name, job);
    verbs.emplace_back(verb, add_options(*verb));
  };
  add("limits", "what this machine reads from memory and multiplies at best, now", AddBenchLimits);
  add("attention", "decode and prefill over a cache, contiguous and paged", AddBenchAttention);
  add("linear", "tokens times a weight matrix", AddBenchLinear);
  add("model", "prefill and decode of a whole model", AddBenchModel);
  add("append", "a new token into all layers, against concatenation and memcpy", AddBenchAppend);
  add("serving", "many requests in one amount of memory, in blocks and preallocated",
      AddBenchServing);
  app.footer("Example: kvick bench attention --context 16384");
  return [verbs = std::move(verbs)]() -> Status {
    for (const auto& [verb, run] : verbs) {
      if (verb->parsed()) return run();
    }
    KVICK_CHECK(false && "a subcommand is required");
    return {};
  };
}

}  // namespace kvick::cli
