#ifndef KVICK_APPS_KVICK_CLI_H_
#define KVICK_APPS_KVICK_CLI_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/recompute.h"
#include "kvick/engine.h"
#include "kvick/model.h"
#include "kvick/status.h"

// What the verbs share. Exit codes: 0 done, 1 it failed and one sentence on stderr says why, 2
// wrong use, 128 + the signal's number where a verb was asked to stop and did so in order.
namespace kvick::cli {

// A verb: declares itself on `app`; what it returns is run if the user asked for it.
using Verb = std::function<Status()>;
Verb AddBatch(CLI::App& app);
Verb AddBench(CLI::App& app);
Verb AddGenerate(CLI::App& app);
Verb AddInspect(CLI::App& app);
Verb AddLogits(CLI::App& app);
Verb AddPlan(CLI::App& app);
Verb AddProve(CLI::App& app);
Verb AddTokenize(CLI::App& app);

inline constexpr int64_t kMaxTokens = int64_t{1} << 31;

// A size in bytes, as in 24GiB, 512MiB or 1000000.
CLI::Option* AddSizeOption(CLI::App& app, const std::string& names, uint64_t& num_bytes,
                           const std::string& description);

// The options of every verb that runs a model.
struct ModelOptions {
  std::string model;
  std::string cache_type = "auto";
  std::string isa = "auto";
  int64_t context_tokens = 0;
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 512;
  int num_threads = 0;
  bool contiguous = false;
  bool no_cache = false;

  void AddTo(CLI::App& app);
  // Those of them that an engine for many requests has too.
  void AddSharedTo(CLI::App& app, const std::string& default_context);
  EngineOptions ToEngineOptions() const;
  RecomputeOptions ToRecomputeOptions() const;  // with no_cache
};

// "bf16", "f16", "f32"; nullopt for "auto". REQUIRES: one of them.
std::optional<DType> ParseCacheType(std::string_view name);

// "1,2,3" as token ids. Errors: invalid_argument.
Result<std::vector<int32_t>> ParseTokens(std::string_view text);

// A whole file; "-" is stdin.
Result<std::string> ReadText(const std::string& path);

// A name from the command line as a terminal or a page can show it: as it is, or quoted and escaped
// where it holds control characters or is no UTF-8.
std::string ShownName(const std::string& name);

// One JSON object on a line of stdout. Bytes that are no UTF-8 become U+FFFD.
void PrintJson(const nlohmann::json& object);

// One sentence on stderr, for people: "kvick: ...".
void Note(std::string_view sentence);

// Says so, and why, if memory sets the context, or the user beyond what the model was made for.
void NoteContext(
    const ContextSize& context, const ModelInfo& info,
    std::string_view why_capped = "the cache takes at most half of the free memory (-c sets it)");

// A line on stderr that changes while something takes longer than a second; only on a terminal.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  static bool is_possible();
  // Whether it is time for another text.
  bool is_due() const;
  void Show(std::string_view text);
  void Clear();  // leaves the line empty, as it was

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point started_ = Clock::now();
  Clock::time_point shown_;
  bool is_shown_ = false;
};

// "name  12/345" as a status line.
class Progress {
 public:
  explicit Progress(std::string name) : name_(std::move(name)) {}

  void Show(int64_t num_done, int64_t num_total);
  void Clear() { line_.Clear(); }

 private:
  std::string name_;
  StatusLine line_;
};

}  // namespace kvick::cli

#endif  // KVICK_APPS_KVICK_CLI_H_
