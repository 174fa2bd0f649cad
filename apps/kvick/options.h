#ifndef KVICK_APPS_KVICK_OPTIONS_H_
#define KVICK_APPS_KVICK_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recompute.h"
#include "kvick/engine.h"
#include "kvick/exec.h"
#include "kvick/model.h"

// Options that verbs share, and the checks of their values.
namespace kvick::cli {

inline constexpr int64_t kMaxTokens = int64_t{1} << 31;

// Checks, for Option::transform. --help shows what they take ("1 to 1024"); any other value is a
// usage error: "--threads: expected 1 to 1024, got 0".
CLI::Validator IntFrom(int64_t min, int64_t max);
CLI::Validator IntAtLeast(int64_t min, int64_t max = kMaxTokens);  // `max` is not shown
CLI::Validator RealFrom(double min, double max);
CLI::Validator RealAtLeast(double min);
CLI::Validator OneOf(std::vector<std::string> names);
// For Option::check: a path.
CLI::Validator NotEmpty();

// A size in bytes, as in 24GiB, 1.5GiB, 512MB or 1000000.
CLI::Option* AddSizeOption(CLI::App& app, const std::string& names, uint64_t& num_bytes,
                           const std::string& description);
// An option that may be given several times. Its values stay as they are, whatever they hold.
CLI::Option* AddTexts(CLI::App& app, const std::string& names, std::vector<std::string>& texts,
                      const std::string& description);
CLI::Option* AddJsonFlag(CLI::App& app, bool& json);
// --numerics, --precision, --isa and -t. What they set in `exec` are literals.
void AddExecOptions(CLI::App& app, ExecOptions& exec);
// -m, or the path alone: `kvick prove model.gguf`.
CLI::Option* AddModelOption(CLI::App& app, std::string& path);

// Up to two words without an option, a path of a model and a text in any order:
// `kvick generate model.gguf "Once upon a time"`. A word that names a file or folder, or ends in
// .gguf, is the path.
struct Words {
  std::vector<std::string> first, second;  // each one word at most

  // With -m, which sets `model`.
  void AddTo(CLI::App& app, std::string& model);
  // Sorts them into `model`, where -m has not set it, and the text. Throws CLI::ParseError: two
  // texts, or a file that is not the model.
  std::optional<std::string> TakeText(std::string& model) const;
};

// The options of every verb that runs a model.
struct ModelOptions {
  std::string model;
  std::string cache_type = "auto";
  int64_t context_tokens = 0;
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 512;
  bool contiguous = false;
  bool no_cache = false;
  ExecOptions exec;

  void AddTo(CLI::App& app);
  // Those of them that an engine for many requests has too.
  void AddSharedTo(CLI::App& app, const std::string& default_context);
  EngineOptions ToEngineOptions() const;
  RecomputeOptions ToRecomputeOptions() const;  // with no_cache
};

// "bf16", "f16", "f32"; nullopt for "auto". REQUIRES: one of them.
std::optional<DType> ParseCacheType(std::string_view name);

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_OPTIONS_H_
