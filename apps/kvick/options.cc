#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/check.h"
#include "terminal.h"

namespace kvick::cli {
namespace {

constexpr char kModelHelp[] = "GGUF file or Hugging Face folder; default: the built-in demo model";
constexpr uint64_t kMaxSizeBytes = uint64_t{1} << 50;

std::string Expected(std::string_view what, const std::string& got) {
  return fmt::format("expected {}, got {}", what, got.empty() ? "nothing" : ShownName(got));
}

// All of `text` as a decimal number. from_chars reads no octal, no hexadecimal, no locale.
template <class Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

CLI::Validator IntCheck(int64_t min, int64_t max, const std::string& range) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const auto number = ParseNumber<int64_t>(text);
        if (!number || *number < min) return Expected(range, text);
        if (*number > max) return Expected(fmt::format("at most {}", max), text);
        text = std::to_string(*number);  // as CLI11 reads it: without leading zeros
        return "";
      },
      range);
}

CLI::Validator RealCheck(double min, double max, const std::string& range) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const auto number = ParseNumber<double>(text);
        const bool is_within = number && std::isfinite(*number) && *number >= min && *number <= max;
        return is_within ? "" : Expected("a number, " + range, text);
      },
      range);
}

// The bytes of a unit, whatever its case: KB and K are 1000, KiB and Ki 1024.
std::optional<double> UnitBytes(std::string unit) {
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgtpe";
  const size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  const bool is_binary = rest.starts_with('i');
  if (!(rest.empty() || rest == "b" || rest == "i" || rest == "ib")) return std::nullopt;
  return std::pow(is_binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

std::optional<double> ParseSize(std::string_view text) {
  const size_t num_digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(num_digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto number = ParseNumber<double>(text.substr(0, num_digits));
  const auto unit_bytes = UnitBytes(std::string(unit));
  if (!number || !unit_bytes) return std::nullopt;
  return std::floor(*number * *unit_bytes);
}

std::string CheckSize(std::string& text) {
  const auto num_bytes = ParseSize(text);
  if (!num_bytes) return Expected("a size such as 512MiB or 1.5GiB", text);
  if (*num_bytes < 1) return Expected("at least 1 byte", text);
  if (*num_bytes > static_cast<double>(kMaxSizeBytes)) return Expected("at most 1024TiB", text);
  text = std::to_string(static_cast<uint64_t>(*num_bytes));
  return "";
}

// One of `names`, which are literals: `name` is a view of one of them.
CLI::Option* AddNameOption(CLI::App& app, const std::string& option, std::string_view& name,
                           std::vector<std::string_view> names) {
  const auto take = [&name, names](const std::string& text) {
    name = *std::ranges::find(names, text);
  };
  return app.add_option_function<std::string>(option, take)
      ->type_name("NAME")
      ->transform(OneOf({names.begin(), names.end()}))
      ->default_str(std::string(name));
}

bool IsFileOrFolder(const std::string& word) {
  std::error_code ignored;
  return std::filesystem::exists(word, ignored);
}

}  // namespace

CLI::Validator IntFrom(int64_t min, int64_t max) {
  return IntCheck(min, max, fmt::format("{} to {}", min, max));
}

CLI::Validator IntAtLeast(int64_t min, int64_t max) {
  return IntCheck(min, max, fmt::format("at least {}", min));
}

CLI::Validator RealFrom(double min, double max) {
  return RealCheck(min, max, fmt::format("{} to {}", min, max));
}

CLI::Validator RealAtLeast(double min) {
  return RealCheck(min, std::numeric_limits<double>::max(), fmt::format("at least {}", min));
}

CLI::Validator OneOf(std::vector<std::string> names) {
  const std::string last = names.back();
  const std::string list =
      fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), last);
  return CLI::Validator(
      [names = std::move(names), list](std::string& text) -> std::string {
        return std::ranges::count(names, text) > 0 ? "" : Expected(list, text);
      },
      list);
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& path) -> std::string {
        return path.empty() ? "expected a path, got nothing" : "";
      },
      "");
}

CLI::Option* AddSizeOption(CLI::App& app, const std::string& names, uint64_t& num_bytes,
                           const std::string& description) {
  return app.add_option(names, num_bytes, description)
      ->transform(CLI::Validator(CheckSize, ""))
      ->type_name("SIZE");
}

// CLI11 reads "{}" and "[a,b]" as lists, but not where the results are asked for as they are.
CLI::Option* AddTexts(CLI::App& app, const std::string& names, std::vector<std::string>& texts,
                      const std::string& description) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto take = [&app, &texts, name](const CLI::results_t&) {
    texts = app.get_option(name)->results();
    return true;
  };
  return app.add_option(names, take, description)
      ->type_name("TEXT")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
}

CLI::Option* AddJsonFlag(CLI::App& app, bool& json) {
  return app.add_flag("--json", json, "print one JSON object");
}

void AddExecOptions(CLI::App& app, ExecOptions& exec) {
  AddNameOption(app, "--numerics", exec.numerics, {"auto", "canonical", "tiles"})
      ->description("order of operations: canonical is the same on every machine");
  AddNameOption(app, "--precision", exec.precision, {"standard", "high"})
      ->description("high: activations meet bf16 weights as the sum of two bf16");
  std::vector<std::string_view> isas = {"auto"};
  for (const IsaInfo& known : KnownIsas()) isas.push_back(known.name);
  AddNameOption(app, "--isa", exec.isa, std::move(isas))
      ->description("implementation of the kernels, see kvick --version");
  app.add_option("-t,--threads", exec.num_threads,
                 "threads; default: all cores that the process may use")
      ->transform(IntFrom(1, 1024));
}

CLI::Option* AddModelOption(CLI::App& app, std::string& path) {
  return app.add_option("-m,--model,MODEL", path, kModelHelp)->type_name("FILE")->check(NotEmpty());
}

void Words::AddTo(CLI::App& app, std::string& model) {
  app.add_option("-m,--model", model, kModelHelp)->type_name("FILE")->check(NotEmpty());
  AddTexts(app, "MODEL", first, "")->expected(1)->group("");
  AddTexts(app, "PROMPT", second, "")->expected(1)->group("");
}

std::optional<std::string> Words::TakeText(std::string& model) const {
  std::vector<std::string> words = first;
  words.insert(words.end(), second.begin(), second.end());
  std::optional<std::string> text;
  for (const std::string& word : words) {
    const bool is_path = word.ends_with(".gguf") || IsFileOrFolder(word);
    if (is_path && model.empty()) {
      model = word;
    } else if (is_path) {
      throw CLI::ValidationError(
          fmt::format("{0}: expected a prompt, got a file; -f {0} reads the prompt from it, -p "
                      "takes the name itself",
                      ShownName(word)));
    } else if (text) {
      throw CLI::ValidationError(
          fmt::format("expected one prompt, got \"{}\" and \"{}\"; put a prompt into quotes",
                      ShownName(*text), ShownName(word)));
    } else {
      text = word;
    }
  }
  return text;
}

void ModelOptions::AddTo(CLI::App& app) {
  AddSharedTo(app, "the model's, as far as half of the free memory goes");
  app.add_option("--chunk", chunk_tokens, "tokens of a prompt in one pass")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  app.add_flag("--no-cache", no_cache, "recompute all tokens for every new token");
}

void ModelOptions::AddSharedTo(CLI::App& app, const std::string& default_context) {
  app.add_option("-c,--ctx-size", context_tokens,
                 "maximum tokens of a sequence; default: " + default_context)
      ->transform(IntAtLeast(1));
  auto* block = app.add_option("--block-tokens", block_tokens, "tokens in a block of the cache")
                    ->transform(IntAtLeast(1))
                    ->capture_default_str();
  app.add_flag("--contiguous", contiguous, "one block a sequence, as long as the context")
      ->excludes(block);
  app.add_option("--cache-type-k", cache_type,
                 "number type of the cache, also -ctk; auto is that of the weights")
      ->type_name("TYPE")
      ->transform(OneOf({"auto", "bf16", "f16", "f32"}))
      ->capture_default_str();
  AddExecOptions(app, exec);
}

EngineOptions ModelOptions::ToEngineOptions() const {
  EngineOptions options;
  options.context_tokens = context_tokens;
  options.block_tokens = contiguous ? 0 : block_tokens;
  options.batch_tokens = chunk_tokens;
  options.kv_dtype = ParseCacheType(cache_type);
  options.exec = exec;
  return options;
}

RecomputeOptions ModelOptions::ToRecomputeOptions() const {
  return {context_tokens, ParseCacheType(cache_type), exec};
}

std::optional<DType> ParseCacheType(std::string_view name) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  KVICK_CHECK(name == "auto");
  return std::nullopt;
}

}  // namespace kvick::cli
