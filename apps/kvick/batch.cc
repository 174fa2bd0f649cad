// kvick batch: many requests from a file, side by side; their results into another.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "batch_output.h"
#include "batch_request.h"
#include "batch_result.h"
#include "cli.h"
#include "demo_model.h"
#include "engine/sequence.h"
#include "help.h"
#include "line_reader.h"
#include "notes.h"
#include "options.h"
#include "terminal.h"
#include "wake_pipe.h"

namespace kvick::cli {
namespace {

// Completions submitted to the engine, for each that it may run at once: enough that it never runs
// fewer while there is input.
constexpr int64_t kSubmittedPerRunning = 4;
// Results held back by a request that takes long, with --ordered.
constexpr int64_t kMaxHeld = 10'000;

struct BatchOptions {
  ModelOptions model;
  std::string input;
  std::string output;
  uint64_t cache_bytes = 0;  // 0: DefaultCacheBytes
  int64_t max_sequences = 64;
  bool ordered = false;
  bool resume = false;
  bool force = false;

  OutputStart start() const {
    if (resume) return OutputStart::kResume;
    return force ? OutputStart::kOverwrite : OutputStart::kNew;
  }
};

// A request that was submitted to the engine.
struct Underway {
  RequestKey key;
  int64_t place = 0;  // in the ResultQueue
  int64_t num_prompt_tokens = 0;
  std::vector<bool> is_written;  // completions that an earlier run has written
  bool has_failed = false;
};

struct Ended {
  std::shared_ptr<Underway> request;
  GenerateResult result;
};

// Hands results from the engine's thread to the thread that reads and writes.
class Mailbox {
 public:
  explicit Mailbox(const WakePipe& pipe) : pipe_(pipe) {}

  RequestCallbacks Callbacks(std::shared_ptr<Underway> request) {
    RequestCallbacks callbacks;
    callbacks.on_token = [this](const TokenEvent& event) {
      if (event.token) num_new_tokens_.fetch_add(1, std::memory_order_relaxed);
      return true;
    };
    callbacks.on_finish = [this, request = std::move(request)](GenerateResult result) {
      {
        const std::lock_guard lock(mutex_);
        ended_.push_back({request, std::move(result)});
      }
      pipe_.Wake();
    };
    return callbacks;
  }

  std::vector<Ended> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ended_, {});
  }

  int64_t num_new_tokens() const { return num_new_tokens_; }

 private:
  const WakePipe& pipe_;
  std::atomic<int64_t> num_new_tokens_ = 0;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

struct BatchCounts {
  int64_t num_requests = 0;  // lines
  int64_t num_skipped = 0;   // of these, from an earlier run
  int64_t num_failed = 0;
  int64_t num_prompt_tokens = 0;  // summed over completions
  int64_t num_reused_tokens = 0;
};

// What a batch works with.
struct BatchParts {
  const Model& model;
  const WakePipe& pipe;
  Mailbox& mailbox;
  Engine& engine;
  LineReader& input;
  ResultFile& output;
};

// A loop that waits for lines, for results, and for Ctrl-C.
class BatchRun {
 public:
  BatchRun(const BatchParts& parts, const BatchOptions& options)
      : parts_(parts),
        max_submitted_(kSubmittedPerRunning * options.max_sequences),
        queue_(options.ordered ? ResultOrder::kOfInput : ResultOrder::kOfCompletion) {}

  // Returns when all is written, or a signal asks to stop. Errors: io.
  Status Run();
  const BatchCounts& counts() const { return counts_; }
  double seconds() const { return static_cast<double>(MicrosecondsSince(started_)) / 1e6; }

 private:
  bool wants_lines() const {
    return num_submitted_ < max_submitted_ && queue_.num_held() < kMaxHeld;
  }
  void TakeLines();
  void TakeRequest(BatchRequest request);
  // Errors: the request's own; invalid_argument: an id that an earlier line has.
  Status Check(const BatchRequest& request);
  void Refuse(BatchRequest request, Error error);
  void Submit(BatchRequest request);
  // Whether results of it are missing.
  bool IsToBeRun(const BatchRequest& request, Underway& underway);
  void TakeResults();
  void CountFailure(Underway& request);
  void ShowProgress();
  // Returns when there is input, a result or a signal. Errors: io.
  Status Wait();

  BatchParts parts_;
  int64_t max_submitted_;
  ResultQueue queue_;
  StatusLine line_;
  Clock::time_point started_ = Clock::now();
  BatchCounts counts_;
  std::unordered_set<std::string> ids_;  // as JSON, of requests that have one
  int64_t num_submitted_ = 0;            // completions that are to come
  bool is_drained_ = false;              // no whole line waits to be taken
};

Status BatchRun::Run() {
  Status input_status;  // an error of the input comes after the results of what was read
  while (CaughtSignal() == 0) {
    TakeResults();
    TakeLines();
    KVICK_RETURN_IF_ERROR(parts_.output.Append(queue_.Take()));
    if (!is_drained_ && wants_lines()) continue;
    if (is_drained_ && parts_.input.is_at_end() && num_submitted_ == 0) break;
    ShowProgress();
    if (Status status = Wait(); !status) input_status = std::move(status);
  }
  parts_.engine.Shutdown(ShutdownMode::kAbort);  // only a signal leaves requests
  TakeResults();
  line_.Clear();
  KVICK_RETURN_IF_ERROR(parts_.output.Append(queue_.TakeRest()));
  return input_status;
}

void BatchRun::TakeLines() {
  is_drained_ = false;
  while (wants_lines()) {
    const std::optional<Line> line = parts_.input.Take();
    is_drained_ = !line;
    if (is_drained_) return;
    const bool is_blank =
        !line->is_too_long && line->text.find_first_not_of(" \t\r") == std::string::npos;
    if (!is_blank) TakeRequest(ParseBatchRequest(*line));
  }
}

void BatchRun::TakeRequest(BatchRequest request) {
  ++counts_.num_requests;
  if (!request.key.has_id && ids_.contains(request.key.id.dump())) {
    request.key.id = fmt::format("line {}", request.key.line);
  }
  if (Status status = Check(request); !status) {
    Refuse(std::move(request), std::move(status).error());
  } else {
    Submit(std::move(request));
  }
}

Status BatchRun::Check(const BatchRequest& request) {
  if (request.key.has_id && !ids_.insert(request.key.id.dump()).second) {
    return Fail(ErrorCode::kInvalidArgument, "id: expected a new one, got {} of an earlier line",
                request.key.id.dump());
  }
  if (request.error) return tl::unexpected(*request.error);
  return {};
}

void BatchRun::Refuse(BatchRequest request, Error error) {
  ++counts_.num_failed;
  request.error = std::move(error);
  const bool is_written =
      parts_.output.written().OfRefusal(request.key) != WrittenResults::Outcome::kMissing;
  counts_.num_skipped += is_written ? 1 : 0;
  queue_.Put(queue_.Expect(1), 0, is_written ? "" : RefusalLine(request));
}

bool BatchRun::IsToBeRun(const BatchRequest& request, Underway& underway) {
  using Outcome = WrittenResults::Outcome;
  const WrittenResults& written = parts_.output.written();
  if (written.is_empty()) return true;
  // Refused by the engine, not by Check.
  const bool is_refused = written.OfRefusal(request.key) != Outcome::kMissing;
  bool has_failed = is_refused;
  for (int64_t i = 0; i < request.request.num_samples; ++i) {
    const Outcome outcome = written.OfCompletion(request.key, i);
    underway.is_written.push_back(outcome != Outcome::kMissing);
    has_failed |= outcome == Outcome::kError;
  }
  if (has_failed) CountFailure(underway);
  return !is_refused && std::ranges::count(underway.is_written, false) > 0;
}

void BatchRun::Submit(BatchRequest request) {
  auto underway = std::make_shared<Underway>();
  if (!IsToBeRun(request, *underway)) {
    ++counts_.num_skipped;
    return;
  }
  if (Status status = EncodePrompt(parts_.model, request); !status) {
    return Refuse(std::move(request), std::move(status).error());
  }
  const int64_t num_samples = request.request.num_samples;
  underway->key = request.key;
  underway->num_prompt_tokens = std::ssize(request.request.prompt);
  // Results may come before Submit returns; they wait in the mailbox until TakeResults.
  const auto submitted =
      parts_.engine.Submit(std::move(request.request), parts_.mailbox.Callbacks(underway));
  if (!submitted) return Refuse(std::move(request), submitted.error());
  underway->place = queue_.Expect(num_samples);
  num_submitted_ += num_samples;
}

void BatchRun::TakeResults() {
  for (auto& [request, result] : parts_.mailbox.Take()) {
    --num_submitted_;
    if (result.finish_reason == FinishReason::kCancelled) continue;
    if (result.error) CountFailure(*request);
    counts_.num_prompt_tokens += request->num_prompt_tokens;
    counts_.num_reused_tokens += result.num_reused_tokens;
    const auto idx = static_cast<size_t>(result.sample_idx);
    const bool is_written = idx < request->is_written.size() && request->is_written[idx];
    const bool has_text = parts_.model.has_tokenizer();
    const nlohmann::json text = has_text ? nlohmann::json(result.text) : nlohmann::json(nullptr);
    queue_.Put(
        request->place, result.sample_idx,
        is_written ? "" : CompletionLine(request->key, request->num_prompt_tokens, result, text));
  }
}

void BatchRun::CountFailure(Underway& request) {
  if (!std::exchange(request.has_failed, true)) ++counts_.num_failed;
}

void BatchRun::ShowProgress() {
  if (!line_.is_due()) return;
  const EngineStats stats = parts_.engine.stats();
  const double fill = static_cast<double>(stats.usage.reserved_bytes) /
                      static_cast<double>(stats.usage.capacity_bytes);
  line_.Show(
      fmt::format("{} requests read  {} completions  {:.0f} tokens/s  cache {:.0f}%  {} "
                  "running  {} waiting",
                  counts_.num_requests, stats.num_finished,
                  static_cast<double>(parts_.mailbox.num_new_tokens()) / seconds(), 100 * fill,
                  stats.num_running, stats.num_waiting));
}

Status BatchRun::Wait() {
  constexpr int kProgressMs = 100;
  const bool reads = is_drained_ && !parts_.input.is_at_end();
  pollfd waited[] = {{parts_.pipe.fd(), POLLIN, 0}, {parts_.input.fd(), POLLIN, 0}};
  const int num_ready = poll(waited, reads ? 2 : 1, StatusLine::is_possible() ? kProgressMs : -1);
  if (num_ready <= 0) return {};
  if (waited[0].revents != 0) parts_.pipe.Clear();
  if (reads && waited[1].revents != 0) return parts_.input.Read();
  return {};
}

// A quarter of the free memory, because the pages of the model's file need some too, or
// max_sequences whole contexts if that is less.
Result<int64_t> DefaultCacheBytes(const ModelInfo& info, const EngineOptions& options) {
  KVICK_ASSIGN_OR_RETURN(const int64_t token_bytes, CacheBytesPerToken(info, options.kv_dtype));
  const int64_t context_tokens =
      options.context_tokens > 0 ? options.context_tokens : info.max_positions;
  const int64_t block_tokens = std::max<int64_t>(1, options.block_tokens);
  const int64_t num_blocks = CeilDiv(context_tokens, block_tokens);
  const auto contexts_bytes =
      CheckedProduct({options.max_sequences, num_blocks, block_tokens, token_bytes});
  return std::min(AvailableMemoryBytes() / 4,
                  contexts_bytes.value_or(std::numeric_limits<int64_t>::max()));
}

Result<std::unique_ptr<Engine>> CreateEngine(const Model& model, const BatchOptions& options) {
  EngineOptions engine_options = options.model.ToEngineOptions();
  engine_options.max_sequences = options.max_sequences;
  engine_options.cache_bytes = static_cast<int64_t>(options.cache_bytes);
  if (options.cache_bytes == 0) {
    KVICK_ASSIGN_OR_RETURN(engine_options.cache_bytes,
                           DefaultCacheBytes(model.info(), engine_options));
    engine_options.backing = KvBacking::kOnDemand;  // seldom filled
  }
  KVICK_ASSIGN_OR_RETURN(auto engine, Engine::Create(model, engine_options));
  NoteContext({engine->context_tokens(), engine->context_is_capped()}, model.info(),
              "the cache has room for no more (--cache-memory sets its size)");
  return engine;
}

void NoteSummary(const BatchRun& run, const EngineStats& stats, int64_t num_new_tokens) {
  const BatchCounts& counts = run.counts();
  const double reused = counts.num_prompt_tokens == 0
                            ? 0
                            : 100.0 * static_cast<double>(counts.num_reused_tokens) /
                                  static_cast<double>(counts.num_prompt_tokens);
  Note(fmt::format(
      "{} requests, {} of them from an earlier run; {} new tokens in {:.1f} s, {:.1f} "
      "tokens/s; {:.1f}% of the prompt tokens found in the cache; {} preemptions",
      counts.num_requests, counts.num_skipped, num_new_tokens, run.seconds(),
      static_cast<double>(num_new_tokens) / run.seconds(), reused, stats.num_preemptions));
}

Status RunBatch(const BatchOptions& options) {
  KVICK_ASSIGN_OR_RETURN(static const WakePipe pipe, WakePipe::Create());
  CatchStopSignals(pipe);
  KVICK_ASSIGN_OR_RETURN(LineReader input, LineReader::Open(options.input));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  Mailbox mailbox(pipe);  // outlives the engine
  KVICK_ASSIGN_OR_RETURN(const auto engine, CreateEngine(*model, options));
  // Last, so that nothing that fails before it empties a file.
  KVICK_ASSIGN_OR_RETURN(ResultFile output,
                         ResultFile::Open(options.output, options.start(), input.fd()));
  BatchRun run({*model, pipe, mailbox, *engine, input, output}, options);
  KVICK_RETURN_IF_ERROR(run.Run());
  NoteSummary(run, engine->stats(), mailbox.num_new_tokens());
  if (CaughtSignal() != 0) {
    return Fail(ErrorCode::kCancelled, "stopped by {}; finished results are written{}",
                CaughtSignal() == SIGINT ? "Ctrl-C" : "a signal",
                options.output == "-" ? "" : ", --resume adds the missing ones");
  }
  const BatchCounts& counts = run.counts();
  if (counts.num_failed == 0) return {};
  return Fail(ErrorCode::kInvalidArgument, "{} of {} requests failed; their results say why",
              counts.num_failed, counts.num_requests);
}

void AddFileOptions(CLI::App& app, BatchOptions& options) {
  app.add_option("-i,--input", options.input, "requests, one JSON object a line; - is stdin")
      ->type_name("FILE")
      ->check(NotEmpty())
      ->required();
  app.add_option("-o,--output", options.output,
                 "results, one JSON object a line, in order of completion; - is stdout")
      ->type_name("FILE")
      ->check(NotEmpty())
      ->required();
  app.add_flag("--ordered", options.ordered,
               "write results in the order of the input (after --resume, the missing ones last)");
  auto* resume = app.add_flag(
      "--resume", options.resume,
      "add the results that the output lacks; a line with an error counts as a result, delete it "
      "to run its request again");
  app.add_flag("--force", options.force, "overwrite an output file that is not empty")
      ->excludes(resume);
}

void AddEngineOptions(CLI::App& app, BatchOptions& options) {
  options.model.AddSharedTo(app, "the model's, as far as the cache goes");
  AddSizeOption(app, "--cache-memory", options.cache_bytes,
                "memory of the cache, as in 8GiB; default: a quarter of the free memory, or "
                "--max-sequences whole contexts if that is less");
  app.add_option("--batch-tokens", options.model.chunk_tokens,
                 "maximum tokens in one pass, at least --max-sequences")
      ->transform(IntAtLeast(1))
      ->capture_default_str();
  app.add_option("--max-sequences", options.max_sequences,
                 "maximum completions computed side by side")
      ->transform(IntFrom(1, int64_t{1} << 16))
      ->capture_default_str();
}

}  // namespace

Verb AddBatch(CLI::App& app) {
  auto options = std::make_shared<BatchOptions>();
  AddExample(app, "kvick batch -m model.gguf -i requests.jsonl -o results.jsonl");
  AddModelOption(app, options->model.model);
  AddFileOptions(app, *options);
  app.option_defaults()->group("Cache and machine");
  AddEngineOptions(app, *options);
  app.footer(
      std::string(kBatchLineHelp) +
      "\nA result has \"id\", \"index\" (0 to n - 1), \"text\", \"tokens\", \"finish_reason\"\n"
      "and counts, and \"line\" if its request has no id. A request that failed has\n"
      "\"error\" instead; the others go on, and the exit code is 1. Ctrl-C writes\n"
      "finished results.");
  app.callback([options] {
    if (options->resume && options->output == "-") {
      throw CLI::ValidationError("--resume: expected -o FILE, got stdout");
    }
  });
  return [options] { return RunBatch(*options); };
}

}  // namespace kvick::cli
