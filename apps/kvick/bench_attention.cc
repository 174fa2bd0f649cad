// kvick bench attention: decode and prefill over a cache, contiguous and paged.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention_check.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/random_numbers.h"
#include "base/same_bits.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "help.h"
#include "known_models.h"
#include "kvick/attention.h"
#include "kvick/kv_cache.h"
#include "options.h"

namespace kvick::cli {
namespace {

struct AttentionOptions : BenchOptions {
  std::string geometry = "llama-3-8b";
  std::string cache_type = "bf16";
  int64_t context_tokens = 16384;
  int64_t num_sequences = 1;
  int64_t num_new = 512;
  int64_t window_tokens = 0;
  int64_t block_tokens = 16;
  bool contiguous = false;
};

// Sequences of one length in one cache. A pass goes to another layer, and from the last layer to
// other sequences: in all, they take more memory than the caches of the machine hold.
struct CachedSequences {
  // What a pass goes to.
  struct Place {
    int64_t layer;
    int64_t first_sequence;
  };

  Place Next();

  std::unique_ptr<KvCache> cache;
  std::vector<KvView> views;  // of each sequence
  int64_t num_in_pass = 1;    // sequences
  int64_t num_passes = 0;     // so far
};

CachedSequences::Place CachedSequences::Next() {
  const int64_t num_layers = cache->layout().num_layers;
  const int64_t num_groups = std::ssize(views) / num_in_pass;
  const int64_t pass = num_passes++;
  return {pass % num_layers, pass / num_layers % num_groups * num_in_pass};
}

class AttentionBench {
 public:
  static Result<std::unique_ptr<AttentionBench>> Create(const AttentionOptions& options,
                                                        const BenchSetup& setup,
                                                        int64_t block_tokens);

  // One new token of each of some sequences, or all the new tokens of one.
  Contender Decode();
  Contender Prefill();
  // Compares the last token of a prefill with the reference; the same token alone, as decode
  // computes it, must have the same bits. Returns them, [H, D].
  Result<std::vector<float>> Check();

  BenchWork decode_work() const;
  BenchWork prefill_work() const;

 private:
  // Sequences of `num_tokens` each, `num_in_pass` of them in a pass.
  struct Shape {
    int64_t num_tokens;
    int64_t num_in_pass;
    int64_t block_tokens;  // 0: contiguous
  };

  AttentionBench() = default;
  Result<CachedSequences> Fill(const BenchSetup& setup, const Shape& shape) const;
  Status Run(int64_t layer, std::span<const AttentionQuery> queries, const float* q);
  const float* LastQuery() const { return q_.data() + (options_.num_new - 1) * row_floats(); }
  int64_t row_floats() const { return config_.num_heads * config_.head_dim; }
  // How many of `num` positions a token sees.
  int64_t NumSeen(int64_t num) const {
    return options_.window_tokens > 0 ? std::min(num, options_.window_tokens) : num;
  }
  int64_t prefilled_tokens() const { return options_.context_tokens + options_.num_new; }
  int64_t layer_bytes(int64_t num_tokens) const {  // of keys and values
    return 2 * num_tokens * config_.num_kv_heads * config_.head_dim * DTypeBytes(config_.dtype);
  }

  BenchWork Work(int64_t num_bytes, double num_seen) const;

  AttentionOptions options_;
  Isa isa_ = Isa::kScalar;
  AttentionConfig config_;
  std::unique_ptr<Attention> attention_;
  CachedSequences decoded_;     // of context_tokens, the last of them new
  CachedSequences prefilled_;   // of context_tokens, and num_new behind them
  std::vector<float> q_, out_;  // [max(num_new, num_sequences), H, D]
  std::vector<AttentionQuery> queries_;
};

Result<std::unique_ptr<AttentionBench>> AttentionBench::Create(const AttentionOptions& options,
                                                               const BenchSetup& setup,
                                                               int64_t block_tokens) {
  std::unique_ptr<AttentionBench> bench(new AttentionBench());
  const KnownModel& model = *FindKnownModel(options.geometry);
  bench->options_ = options;
  bench->isa_ = setup.exec.isa;
  bench->config_.num_heads = model.num_heads;
  bench->config_.num_kv_heads = model.num_kv_heads;
  bench->config_.head_dim = model.head_dim;
  bench->config_.dtype = ParseDType(options.cache_type);
  bench->config_.exec = bench->options_.exec;
  bench->config_.windows.assign(static_cast<size_t>(model.num_layers), options.window_tokens);
  KVICK_ASSIGN_OR_RETURN(bench->attention_, Attention::Create(bench->config_));
  KVICK_ASSIGN_OR_RETURN(
      bench->decoded_,
      bench->Fill(setup, {options.context_tokens, options.num_sequences, block_tokens}));
  KVICK_ASSIGN_OR_RETURN(bench->prefilled_,
                         bench->Fill(setup, {bench->prefilled_tokens(), 1, block_tokens}));
  const int64_t num_rows = std::max(options.num_new, options.num_sequences);
  bench->q_.resize(static_cast<size_t>(num_rows * bench->row_floats()));
  bench->out_.resize(bench->q_.size());
  RandomNumbers{DType::kF32, num_rows * bench->row_floats()}.WriteTo(
      reinterpret_cast<std::byte*>(bench->q_.data()));
  return bench;
}

// As many layers as the model has, and then more sequences, until their blocks take the working
// set.
Result<CachedSequences> AttentionBench::Fill(const BenchSetup& setup, const Shape& shape) const {
  KvConfig config;
  config.block_tokens = shape.block_tokens > 0 ? shape.block_tokens : shape.num_tokens;
  const int64_t sequence_blocks = CeilDiv(shape.num_tokens, config.block_tokens);
  const int64_t pass_bytes = shape.num_in_pass * layer_bytes(sequence_blocks * config.block_tokens);
  const int64_t num_passes = CeilDiv(setup.working_set_bytes, pass_bytes);
  config.num_layers = std::min(FindKnownModel(options_.geometry)->num_layers, num_passes);
  config.num_kv_heads = config_.num_kv_heads;
  config.head_dim = config_.head_dim;
  config.dtype = config_.dtype;
  const int64_t num_sequences = shape.num_in_pass * CeilDiv(num_passes, config.num_layers);
  config.num_blocks = num_sequences * sequence_blocks;
  CachedSequences filled;
  filled.num_in_pass = shape.num_in_pass;
  KVICK_ASSIGN_OR_RETURN(filled.cache, KvCache::Create(config));
  std::vector<SequenceId> sequences;
  for (int64_t i = 0; i < num_sequences; ++i) sequences.push_back(filled.cache->CreateSequence());
  const RandomTokens tokens{sequences, shape.num_tokens, setup.exec.num_threads};
  KVICK_RETURN_IF_ERROR(tokens.AppendTo(*filled.cache));
  for (const SequenceId sequence : sequences) {
    KVICK_ASSIGN_OR_RETURN(const KvView view, filled.cache->View(sequence));
    filled.views.push_back(view);
  }
  return filled;
}

Status AttentionBench::Run(int64_t layer, std::span<const AttentionQuery> queries, const float* q) {
  int64_t num_tokens = 0;
  for (const AttentionQuery& query : queries) num_tokens += query.num_tokens;
  return attention_->Run(layer, queries,
                         DenseF32(q, {num_tokens, config_.num_heads, config_.head_dim}),
                         DenseF32(out_.data(), {num_tokens, config_.num_heads, config_.head_dim}));
}

Contender AttentionBench::Decode() {
  return {
      [this] {
        const CachedSequences::Place place = decoded_.Next();
        queries_.clear();
        for (int64_t i = 0; i < decoded_.num_in_pass; ++i) {
          queries_.push_back({decoded_.views[static_cast<size_t>(place.first_sequence + i)], 1});
        }
        return Run(place.layer, queries_, q_.data());
      },
      nullptr};
}

Contender AttentionBench::Prefill() {
  return {[this] {
            const CachedSequences::Place place = prefilled_.Next();
            const AttentionQuery query = {
                prefilled_.views[static_cast<size_t>(place.first_sequence)], options_.num_new};
            return Run(place.layer, {&query, 1}, q_.data());
          },
          nullptr};
}

Result<std::vector<float>> AttentionBench::Check() {
  const int64_t layer = prefilled_.cache->layout().num_layers - 1;
  const AttentionQuery prefill = {prefilled_.views.front(), options_.num_new};
  KVICK_RETURN_IF_ERROR(Run(layer, {&prefill, 1}, q_.data()));
  const auto last = out_.begin() + (options_.num_new - 1) * row_floats();
  const std::vector<float> bits(last, last + row_floats());
  const auto width = static_cast<size_t>(row_floats());
  KVICK_RETURN_IF_ERROR(CheckAttention(config_, layer, prefill.kv, {LastQuery(), width}, bits));
  const AttentionQuery decode = {prefill.kv, 1};
  KVICK_RETURN_IF_ERROR(Run(layer, {&decode, 1}, LastQuery()));
  if (!SameBits(std::span(out_).first(width), bits)) {
    return Fail(ErrorCode::kInternal, "bench: decode gives other bits than prefill");
  }
  return bits;
}

BenchWork AttentionBench::decode_work() const {
  const int64_t num_seen = options_.num_sequences * NumSeen(options_.context_tokens);
  return Work(layer_bytes(num_seen), static_cast<double>(num_seen));
}

BenchWork AttentionBench::prefill_work() const {
  double num_seen = 0;
  for (int64_t i = 1; i <= options_.num_new; ++i) {
    num_seen += static_cast<double>(NumSeen(options_.context_tokens + i));
  }
  const int64_t num_read = NumSeen(options_.context_tokens + 1) + options_.num_new - 1;
  return Work(layer_bytes(num_read), num_seen);
}

// Keys and values, read once. Of each head, new token and position that it sees: D multiply-adds
// for the score, D for the sum.
BenchWork AttentionBench::Work(int64_t num_bytes, double num_seen) const {
  const Multiplication multiplication = AttentionMultiplication(isa_, config_.dtype);
  return {static_cast<double>(num_bytes),
          {{multiplication, 4.0 * static_cast<double>(row_floats()) * num_seen}}};
}

Status TimeAttention(std::span<const std::unique_ptr<AttentionBench>> benches,
                     std::span<const int64_t> layouts, BenchReport& report) {
  std::vector<BenchCase> decode, prefill;
  for (size_t i = 0; i < benches.size(); ++i) {
    AttentionBench& bench = *benches[i];
    const std::string layout = LayoutName(layouts[i]);
    decode.push_back({"decode", layout, bench.decode_work(), bench.Decode()});
    prefill.push_back({"prefill", layout, bench.prefill_work(), bench.Prefill()});
  }
  KVICK_ASSIGN_OR_RETURN(auto buffer, MakeReadBuffer(report.setup));
  const BenchLimit read = ReadBenchLimit(std::move(buffer), report.setup.exec);
  KVICK_RETURN_IF_ERROR(report.Time(read, std::move(decode)));
  return report.Time(read, std::move(prefill));
}

Outcome RunAttention(const AttentionOptions& options) {
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(options));
  std::vector<int64_t> layouts = {0};
  if (!options.contiguous) layouts.push_back(options.block_tokens);
  std::vector<std::unique_ptr<AttentionBench>> benches;
  std::vector<float> bits;
  for (const int64_t block_tokens : layouts) {
    KVICK_ASSIGN_OR_RETURN(auto bench, AttentionBench::Create(options, report.setup, block_tokens));
    KVICK_ASSIGN_OR_RETURN(const std::vector<float> got, bench->Check());
    if (!bits.empty() && !SameBits(bits, got)) {
      return Fail(ErrorCode::kInternal, "bench: blocks of {} give other bits than one block",
                  block_tokens);
    }
    bits = got;
    benches.push_back(std::move(bench));
  }
  KVICK_RETURN_IF_ERROR(TimeAttention(benches, layouts, report));
  if (layouts.size() == 2) {
    report.AddRatio(fmt::format("decode {} / contiguous", LayoutName(layouts[1])), report.rows[1],
                    report.rows[0]);
    report.AddRatio(fmt::format("prefill {} / contiguous", LayoutName(layouts[1])), report.rows[3],
                    report.rows[2]);
  }
  return report.Finish(options);
}

}  // namespace

Verb AddBenchAttention(CLI::App& app) {
  auto options = std::make_shared<AttentionOptions>();
  AddGeometryOption(app, options->geometry);
  AddExample(app, "kvick bench attention --context 2048 --sequences 8 -ctk f16");
  app.add_option("--context", options->context_tokens, "cached tokens of a sequence")
      ->transform(IntFrom(1, int64_t{1} << 24))
      ->capture_default_str();
  app.add_option("--sequences", options->num_sequences, "sequences that decode side by side")
      ->transform(IntFrom(1, int64_t{1} << 12))
      ->capture_default_str();
  app.add_option("--new", options->num_new, "tokens of one sequence that prefill adds")
      ->transform(IntFrom(1, int64_t{1} << 16))
      ->capture_default_str();
  app.add_option("--window", options->window_tokens, "tokens that a token sees; 0: all before it")
      ->transform(IntFrom(0, int64_t{1} << 24))
      ->capture_default_str();
  auto* block = app.add_option("--block-tokens", options->block_tokens,
                               "tokens in a block, compared with one block a sequence")
                    ->transform(IntFrom(1, int64_t{1} << 24))
                    ->capture_default_str();
  app.add_flag("--contiguous", options->contiguous, "only one block a sequence")->excludes(block);
  AddCacheTypeOption(app, options->cache_type);
  options->AddTo(app);
  return [options] { return RunAttention(*options); };
}

}  // namespace kvick::cli
