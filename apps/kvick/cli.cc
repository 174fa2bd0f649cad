#include "cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/check.h"
#include "formats/quoted.h"
#include "formats/utf8.h"

namespace kvick::cli {
namespace {

// On stderr. Where it cannot be written, nothing happens.
void PrintAside(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

CLI::Option* AddSizeOption(CLI::App& app, const std::string& names, uint64_t& num_bytes,
                           const std::string& description) {
  return app.add_option(names, num_bytes, description)
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50));
}

void ModelOptions::AddTo(CLI::App& app) {
  AddSharedTo(app, "the model's, as far as half of the free memory goes");
  app.add_option("--chunk", chunk_tokens, "tokens of a prompt in one pass")
      ->check(CLI::Range(int64_t{1}, kMaxTokens))
      ->capture_default_str();
  app.add_flag("--no-cache", no_cache, "recompute the whole text for every token");
}

void ModelOptions::AddSharedTo(CLI::App& app, const std::string& default_context) {
  app.add_option("-m,--model", model,
                 "GGUF file or Hugging Face folder; default: the demo model in the program");
  app.add_option("-c,--ctx-size", context_tokens,
                 "tokens a sequence may hold; default: " + default_context)
      ->check(CLI::Range(int64_t{1}, kMaxTokens));
  auto* block = app.add_option("--block-tokens", block_tokens, "tokens in a block of the cache")
                    ->check(CLI::Range(int64_t{1}, kMaxTokens))
                    ->capture_default_str();
  app.add_flag("--contiguous", contiguous, "one block a sequence, as long as the context")
      ->excludes(block);
  app.add_option("--cache-type-k", cache_type,
                 "-ctk: number type of the cache; auto is the weights'")
      ->check(CLI::IsMember({"auto", "bf16", "f16", "f32"}))
      ->capture_default_str();
  app.add_option("--isa", isa, "implementation of the kernels; `kvick --version` lists them")
      ->capture_default_str();
  app.add_option("-t,--threads", num_threads, "default: all cores that the process may use")
      ->check(CLI::Range(1, 1024));
}

EngineOptions ModelOptions::ToEngineOptions() const {
  EngineOptions options;
  options.context_tokens = context_tokens;
  options.block_tokens = contiguous ? 0 : block_tokens;
  options.batch_tokens = chunk_tokens;
  options.kv_dtype = ParseCacheType(cache_type);
  options.isa = isa;
  options.num_threads = num_threads;
  return options;
}

RecomputeOptions ModelOptions::ToRecomputeOptions() const {
  return {context_tokens, ParseCacheType(cache_type), isa, num_threads};
}

std::optional<DType> ParseCacheType(std::string_view name) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  KVICK_CHECK(name == "auto");
  return std::nullopt;
}

Result<std::vector<int32_t>> ParseTokens(std::string_view text) {
  std::vector<int32_t> tokens;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    int32_t token = 0;
    const auto [stop, error] = std::from_chars(next, end, token);
    if (error != std::errc() || (stop != end && *stop != ',')) {
      return Fail(ErrorCode::kInvalidArgument,
                  "--tokens: \"{}\" is no list of token ids, one like 1,403,407 is wanted", text);
    }
    tokens.push_back(token);
    if (stop == end) return tokens;
    next = stop + 1;
  }
}

Result<std::string> ReadText(const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return Fail(ErrorCode::kInvalidArgument, "{}: a folder, a file is wanted", path);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ErrorCode::kIo, "{}: cannot be opened: {}", path, std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return Fail(ErrorCode::kIo, "{}: cannot be read", path);
  return text;
}

std::string ShownName(const std::string& name) {
  std::string_view rest = name;
  while (!rest.empty()) {
    const Utf8Unit unit = NextUtf8(rest);
    const auto byte = static_cast<unsigned char>(rest.front());
    if (unit.kind != Utf8Kind::kCharacter || byte < 0x20 || byte == 0x7f) return Quoted(name);
    rest.remove_prefix(unit.num_bytes);
  }
  return name;
}

void PrintJson(const nlohmann::json& object) {
  const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void Note(std::string_view sentence) { PrintAside(fmt::format("kvick: {}\n", sentence)); }

void NoteContext(const ContextSize& context, const ModelInfo& info, std::string_view why_capped) {
  if (context.tokens > info.max_positions) {
    Note(
        fmt::format("the context of {} tokens is longer than the {} that the model was made for: "
                    "what lies behind them may make no sense",
                    context.tokens, info.max_positions));
  }
  if (!context.is_capped) return;
  Note(fmt::format("the context is {} of the model's {} tokens: {}", context.tokens,
                   info.max_positions, why_capped));
}

bool StatusLine::is_possible() {
  static const bool is_terminal = isatty(STDERR_FILENO) == 1;
  return is_terminal;
}

bool StatusLine::is_due() const {
  const Clock::time_point now = Clock::now();
  if (!is_possible() || now - started_ < std::chrono::seconds(1)) return false;
  return !is_shown_ || now - shown_ >= std::chrono::milliseconds(100);
}

void StatusLine::Show(std::string_view text) {
  PrintAside(fmt::format("\r\033[K{}", text));
  shown_ = Clock::now();
  is_shown_ = true;
}

void StatusLine::Clear() {
  if (is_shown_) PrintAside("\r\033[K");
  is_shown_ = false;
}

void Progress::Show(int64_t num_done, int64_t num_total) {
  if (line_.is_due()) line_.Show(fmt::format("{}  {}/{}", name_, num_done, num_total));
}

}  // namespace kvick::cli
