// kvick batch: many requests from a file, side by side; their results into another.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iterator>
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
#include "line_reader.h"
#include "wake_pipe.h"

namespace kvick::cli {
namespace {

// Texts that the engine knows of, for each that it runs side by side: enough that none of its
// places is ever empty while there is input.
constexpr int64_t kTextsPerPlace = 4;
// Requests held back behind one that takes long, with --ordered.
constexpr int64_t kMaxHeld = 10'000;

struct BatchOptions {
  ModelOptions model;
  std::string input;
  std::string output;
  uint64_t cache_bytes = 0;  // 0: DefaultCacheBytes
  int64_t max_sequences = 64;
  bool ordered = false;
  bool resume = false;
};

// A request that the engine has.
struct Underway {
  nlohmann::json id;
  int64_t place = 0;  // in the ResultQueue
  int64_t num_prompt_tokens = 0;
  std::vector<bool> is_written;  // texts that an earlier run has written
  bool has_failed = false;
};

struct Ended {
  std::shared_ptr<Underway> request;
  GenerateResult result;
};

// What the engine's thread has to say to the one that reads and writes.
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
  int64_t num_skipped = 0;   // of these: all their results were there
  int64_t num_failed = 0;
  int64_t num_prompt_tokens = 0;  // of each text
  int64_t num_reused_tokens = 0;
};

// What a batch goes through: all of it is there before the first line is read.
struct BatchParts {
  const Model& model;
  const WakePipe& pipe;
  Mailbox& mailbox;
  Engine& engine;
  LineReader& input;
  ResultFile& output;
};

// One thread that waits for lines, for results, and for Ctrl-C.
class BatchRun {
 public:
  BatchRun(const BatchParts& parts, const BatchOptions& options)
      : parts_(parts),
        most_texts_(kTextsPerPlace * options.max_sequences),
        queue_(options.ordered ? ResultOrder::kOfInput : ResultOrder::kOfCompletion) {}

  // Until all is written, or a signal asks to stop. Errors: io.
  Status Run();
  const BatchCounts& counts() const { return counts_; }
  double seconds() const { return static_cast<double>(MicrosecondsSince(started_)) / 1e6; }

 private:
  bool wants_lines() const { return num_texts_ < most_texts_ && queue_.num_held() < kMaxHeld; }
  void TakeLines();
  void TakeRequest(BatchRequest request);
  // An id that another line has had, or nothing that can be run. The engine's part is left to it.
  Status Check(const BatchRequest& request);
  void Refuse(BatchRequest request, Error error);
  void Submit(BatchRequest request);
  // False where all its results are there.
  bool IsToBeRun(const BatchRequest& request, Underway& underway);
  void TakeResults();
  void CountFailure(Underway& request);
  void ShowProgress();
  // Until there is a line, a result or a signal. Errors: io.
  Status Wait();

  BatchParts parts_;
  int64_t most_texts_;
  ResultQueue queue_;
  StatusLine line_;
  Clock::time_point started_ = Clock::now();
  BatchCounts counts_;
  std::unordered_set<std::string> ids_;  // as JSON
  int64_t num_texts_ = 0;                // that the engine has
  bool is_drained_ = false;              // no whole line waits to be taken
};

Status BatchRun::Run() {
  Status input_status;  // what was read before it failed is answered
  while (CaughtSignal() == 0) {
    TakeResults();
    TakeLines();
    KVICK_RETURN_IF_ERROR(parts_.output.Append(queue_.Take()));
    if (!is_drained_ && wants_lines()) continue;
    if (is_drained_ && parts_.input.is_at_end() && num_texts_ == 0) break;
    ShowProgress();
    if (Status status = Wait(); !status) input_status = std::move(status);
  }
  parts_.engine.Shutdown(ShutdownMode::kAbort);  // there is nothing pending, but for a signal
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
  if (Status status = Check(request); !status) {
    Refuse(std::move(request), std::move(status).error());
  } else {
    Submit(std::move(request));
  }
}

Status BatchRun::Check(const BatchRequest& request) {
  if (!request.id.is_null() && !ids_.insert(request.id.dump()).second) {
    return Fail(ErrorCode::kInvalidArgument, "the id {} is that of an earlier line",
                request.id.dump());
  }
  if (request.error) return tl::unexpected(*request.error);
  return {};
}

void BatchRun::Refuse(BatchRequest request, Error error) {
  ++counts_.num_failed;
  request.error = std::move(error);
  const bool is_written = parts_.output.written().OfRefusal(request.id, request.line) !=
                          WrittenResults::Outcome::kMissing;
  counts_.num_skipped += is_written ? 1 : 0;
  queue_.Put(queue_.Expect(1), 0, is_written ? "" : RefusalLine(request));
}

bool BatchRun::IsToBeRun(const BatchRequest& request, Underway& underway) {
  using Outcome = WrittenResults::Outcome;
  const WrittenResults& written = parts_.output.written();
  if (written.is_empty()) return true;
  // One that the engine refused, which takes the model to know.
  const bool is_refused = written.OfRefusal(request.id, request.line) != Outcome::kMissing;
  bool has_failed = is_refused;
  for (int64_t i = 0; i < request.request.num_samples; ++i) {
    const Outcome outcome = written.OfText(request.id, i);
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
  underway->id = request.id;
  underway->num_prompt_tokens = std::ssize(request.request.prompt);
  // Its texts may end before Submit returns; nobody looks at them before TakeResults.
  const auto submitted =
      parts_.engine.Submit(std::move(request.request), parts_.mailbox.Callbacks(underway));
  if (!submitted) return Refuse(std::move(request), submitted.error());
  underway->place = queue_.Expect(num_samples);
  num_texts_ += num_samples;
}

void BatchRun::TakeResults() {
  for (auto& [request, result] : parts_.mailbox.Take()) {
    --num_texts_;
    if (result.finish_reason == FinishReason::kCancelled) continue;
    if (result.error) CountFailure(*request);
    counts_.num_prompt_tokens += request->num_prompt_tokens;
    counts_.num_reused_tokens += result.num_reused_tokens;
    const auto idx = static_cast<size_t>(result.sample_idx);
    const bool is_written = idx < request->is_written.size() && request->is_written[idx];
    const bool has_text = parts_.model.has_tokenizer();
    const nlohmann::json text = has_text ? nlohmann::json(result.text) : nlohmann::json(nullptr);
    queue_.Put(request->place, result.sample_idx,
               is_written ? "" : TextLine(request->id, request->num_prompt_tokens, result, text));
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
      fmt::format("{} requests read  {} texts done  {:.0f} tokens/s  cache {:.0f}%  {} "
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

// A quarter of the free memory, which a batch shares with the pages of the model's file; less where
// max_sequences whole contexts are less.
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
    engine_options.backing = KvBacking::kOnDemand;  // seldom filled: it is more than was asked for
  }
  KVICK_ASSIGN_OR_RETURN(auto engine, Engine::Create(model, engine_options));
  NoteContext({engine->context_tokens(), engine->context_is_capped()}, model.info(),
              "the cache has no room for more (--cache-memory sets it)");
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
      "tokens/s; {:.1f}% of the prompt tokens not computed again; {} preemptions",
      counts.num_requests, counts.num_skipped, num_new_tokens, run.seconds(),
      static_cast<double>(num_new_tokens) / run.seconds(), reused, stats.num_preemptions));
}

Status RunBatch(const BatchOptions& options) {
  if (options.resume && options.output == "-") {
    return Fail(ErrorCode::kInvalidArgument, "--resume: -o is stdout, a file is wanted");
  }
  KVICK_ASSIGN_OR_RETURN(static const WakePipe pipe, WakePipe::Create());
  CatchStopSignals(pipe);
  KVICK_ASSIGN_OR_RETURN(LineReader input, LineReader::Open(options.input));
  KVICK_ASSIGN_OR_RETURN(const auto model, OpenModel(options.model.model));
  Mailbox mailbox(pipe);  // outlives the engine
  KVICK_ASSIGN_OR_RETURN(const auto engine, CreateEngine(*model, options));
  // Last, so that nothing that fails before costs results.
  const OutputStart start = options.resume ? OutputStart::kResume : OutputStart::kAnew;
  KVICK_ASSIGN_OR_RETURN(ResultFile output, ResultFile::Open(options.output, start, input.fd()));
  BatchRun run({*model, pipe, mailbox, *engine, input, output}, options);
  KVICK_RETURN_IF_ERROR(run.Run());
  NoteSummary(run, engine->stats(), mailbox.num_new_tokens());
  if (CaughtSignal() != 0) {
    return Fail(ErrorCode::kCancelled, "stopped by {}: what was finished is written{}",
                CaughtSignal() == SIGINT ? "Ctrl-C" : "a signal",
                options.output == "-" ? "" : ", --resume goes on from there");
  }
  const BatchCounts& counts = run.counts();
  if (counts.num_failed == 0) return {};
  return Fail(ErrorCode::kInvalidArgument, "{} of {} requests failed, their lines say why",
              counts.num_failed, counts.num_requests);
}

}  // namespace

Verb AddBatch(CLI::App& app) {
  auto options = std::make_shared<BatchOptions>();
  app.add_option("-i,--input", options->input, "requests, one a line; - is stdin")->required();
  app.add_option("-o,--output", options->output,
                 "results, one a line, in the order of completion; written anew; - is stdout")
      ->required();
  app.add_flag(
      "--ordered", options->ordered,
      "results in the order of the input; after an interruption what was missing comes last");
  app.add_flag(
      "--resume", options->resume,
      "go on behind the results that are in the output; a line with an error counts as one: "
      "delete it there to have it run again");
  options->model.AddSharedTo(app, "the model's, as far as the cache goes");
  AddSizeOption(app, "--cache-memory", options->cache_bytes,
                "of all texts, as in 8GiB; default: a quarter of the free memory, or "
                "--max-sequences whole contexts where that is less");
  app.add_option("--batch-tokens", options->model.chunk_tokens,
                 "tokens in one pass; --max-sequences if that is more")
      ->check(CLI::Range(int64_t{1}, kMaxTokens))
      ->capture_default_str();
  app.add_option("--max-sequences", options->max_sequences,
                 "texts side by side, as far as the cache has room for them")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  app.footer(
      std::string(kBatchLineHelp) +
      "A result has \"id\", \"index\" (of n), \"text\", \"tokens\", \"finish_reason\" and "
      "counts; one that\nfailed has \"error\", and makes the exit code 1. Ctrl-C writes what "
      "is finished.\n\n"
      "Example: kvick batch -m model.gguf -i requests.jsonl -o results.jsonl");
  return [options] { return RunBatch(*options); };
}

}  // namespace kvick::cli
