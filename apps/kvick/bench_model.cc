// kvick bench model: prefill and decode of a whole model, at several depths of the cache.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/same_bits.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "benched_model.h"
#include "help.h"
#include "kvick/kv_cache.h"
#include "kvick/model.h"
#include "model/forward_ref.h"
#include "model/model_parts.h"
#include "options.h"

namespace kvick::cli {
namespace {

struct ModelBenchOptions : BenchOptions {
  BenchedModelOptions model = {.geometry = "llama-3-8b"};
  std::string cache_type = "auto";
  std::vector<int64_t> depths;  // empty: kDefaultDepths, as far as the context reaches
  std::vector<int64_t> sequences = {1, 16};
  int64_t num_new = 0;  // 0: kDefaultNumNew, or the context if that is shorter
};

constexpr int64_t kDefaultDepths[] = {0, 4096, 16384};
constexpr int64_t kDefaultNumNew = 512;
// Tokens behind the depth that the checks need.
constexpr int64_t kNumChecked = 2;

// The weights that a token meets, and the operations that it takes.
struct WeightCounts {
  std::map<Multiplication, double> layer_flops;   // of all layers
  std::map<Multiplication, double> output_flops;  // for a row of logits
  double bytes = 0;                               // of both
};

WeightCounts CountWeights(const ModelWeights& weights, Isa isa) {
  WeightCounts counts;
  const auto add = [&](const MatrixView& w, std::map<Multiplication, double>& flops) {
    flops[WeightMultiplication(isa, w.type)] += WeightFlops(isa, w.type) *
                                                static_cast<double>(w.num_rows) *
                                                static_cast<double>(w.num_cols);
    counts.bytes += static_cast<double>(w.num_rows * RowBytes(w));
  };
  for (const LayerWeights& layer : weights.layers) {
    for (const MatrixView* w :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      add(*w, counts.layer_flops);
    }
  }
  add(weights.output, counts.output_flops);
  return counts;
}

// Sequences of one length in a cache, and steps behind them. A step is a plan that is dropped, so
// that the next one finds the same length.
class ModelBench {
 public:
  static Result<std::unique_ptr<ModelBench>> Create(const ModelBenchOptions& options,
                                                    const BenchSetup& setup, const Model& model);

  // Holds the logits of a short text to the double-precision reference. Needs empty sequences.
  Status CheckLogits();
  // All sequences side by side have the bits of the last one alone, and two tokens in one pass
  // those of one after the other.
  Status CheckBits();
  // Fills the sequences with random keys and values up to that length.
  Status GrowTo(int64_t depth);

  const ModelBenchOptions& options() const { return options_; }
  Contender Decode(int64_t num_sequences);
  Contender Prefill();
  BenchWork decode_work(int64_t num_sequences) const;
  BenchWork prefill_work() const;

 private:
  ModelBench(const ModelBenchOptions& options, const BenchSetup& setup, const Model& model)
      : options_(options),
        exec_(setup.exec),
        model_(model),
        counts_(CountWeights(model.parts().file.weights(), setup.exec.isa)) {}
  Status Allocate();
  // The next tokens of some sequences.
  struct Step {
    int64_t first_sequence = 0;
    int64_t num_sequences = 1;
    int64_t num_tokens = 1;
    int64_t first_token = 0;  // in tokens_, of the first sequence; the next one's is one further
  };
  // Leaves the logits of each sequence's last token in logits_. The plans stay open until the next
  // Run, which drops those that were not committed.
  Status Run(const Step& step);
  std::span<const float> Logits(int64_t row) const;
  Status CheckSideBySide();
  Status CheckChunks();
  BenchWork Work(const Step& step) const;

  ModelBenchOptions options_;
  Exec exec_;
  const Model& model_;
  WeightCounts counts_;
  int64_t depth_ = 0;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<KvCache> cache_;
  std::vector<SequenceId> sequences_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;  // [sequences, V]
  std::vector<WritePlan> plans_;
  std::vector<SequenceChunk> chunks_;
};

Result<std::unique_ptr<ModelBench>> ModelBench::Create(const ModelBenchOptions& options,
                                                       const BenchSetup& setup,
                                                       const Model& model) {
  std::unique_ptr<ModelBench> bench(new ModelBench(options, setup, model));
  KVICK_RETURN_IF_ERROR(bench->Allocate());
  return bench;
}

Status ModelBench::Allocate() {
  const ModelInfo& info = model_.info();
  const int64_t max_depth = *std::max_element(options_.depths.begin(), options_.depths.end());
  const int64_t num_sequences =
      *std::max_element(options_.sequences.begin(), options_.sequences.end());
  const DType kv_dtype = ParseCacheType(options_.cache_type).value_or(info.DefaultKvDType());
  RunnerOptions runner;
  runner.kv_dtype = kv_dtype;
  runner.max_sequences = num_sequences;
  runner.max_batch_tokens = std::max({num_sequences, options_.num_new, kNumChecked});
  runner.exec = options_.exec;
  KVICK_ASSIGN_OR_RETURN(runner_, ModelRunner::Create(model_, runner));
  KvConfig config = info.KvGeometry(kv_dtype);
  config.num_blocks = num_sequences * CeilDiv(max_depth + kNumChecked, config.block_tokens) +
                      CeilDiv(options_.num_new, config.block_tokens);
  KVICK_ASSIGN_OR_RETURN(cache_, KvCache::Create(config));
  for (int64_t i = 0; i < num_sequences; ++i) sequences_.push_back(cache_->CreateSequence());
  for (int64_t i = 0; i < runner.max_batch_tokens + num_sequences; ++i) {
    tokens_.push_back(static_cast<int32_t>(i * 7919 % info.vocab_size));
  }
  logits_.resize(static_cast<size_t>(num_sequences * info.vocab_size));
  return {};
}

Status ModelBench::GrowTo(int64_t depth) {
  const RandomTokens tokens{sequences_, depth - depth_, exec_.num_threads};
  plans_.clear();
  depth_ = depth;
  return tokens.AppendTo(*cache_);
}

Status ModelBench::Run(const Step& step) {
  plans_.clear();
  chunks_.clear();
  for (int64_t i = 0; i < step.num_sequences; ++i) {
    const SequenceId sequence = sequences_[static_cast<size_t>(step.first_sequence + i)];
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache_->Reserve(sequence, step.num_tokens));
    plans_.push_back(std::move(plan));
  }
  const int32_t* tokens = tokens_.data() + step.first_token;
  for (WritePlan& plan : plans_) {
    chunks_.push_back({&plan, {tokens++, static_cast<size_t>(step.num_tokens)}});
  }
  const auto num_logits = static_cast<size_t>(step.num_sequences * model_.info().vocab_size);
  return runner_->Run(*cache_, chunks_, LogitsOf::kLast, {logits_.data(), num_logits});
}

std::span<const float> ModelBench::Logits(int64_t row) const {
  const auto width = static_cast<size_t>(model_.info().vocab_size);
  return std::span(logits_).subspan(static_cast<size_t>(row) * width, width);
}

// Keys, values and activations in bf16 put random models 0.003 to 0.006 of their size off, in f32
// 10^-6. Anything wrong puts them tenths off.
Status ModelBench::CheckLogits() {
  constexpr double kMost = 0.03;
  KVICK_RETURN_IF_ERROR(Run({.num_tokens = kNumChecked}));
  const std::vector<double> all =
      ForwardRef(model_.parts().file, std::span(tokens_).first(kNumChecked));
  const std::span<const float> got = Logits(0);
  const std::span<const double> wanted = std::span(all).last(got.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  const double error = std::sqrt(difference / norm);
  if (error < kMost) return {};
  return Fail(ErrorCode::kInternal, "bench: expected logits within {} of the reference, got {}",
              kMost, error);
}

Status ModelBench::CheckBits() {
  KVICK_RETURN_IF_ERROR(CheckSideBySide());
  return CheckChunks();
}

Status ModelBench::CheckSideBySide() {
  const auto last = static_cast<int64_t>(sequences_.size()) - 1;
  KVICK_RETURN_IF_ERROR(Run({.num_sequences = last + 1}));
  const std::vector<float> beside(Logits(last).begin(), Logits(last).end());
  KVICK_RETURN_IF_ERROR(Run({.first_sequence = last, .first_token = last}));
  if (SameBits(beside, Logits(0))) return {};
  return Fail(ErrorCode::kInternal,
              "bench: at depth {}, {} sequences side by side give other bits than one alone",
              depth_, last + 1);
}

Status ModelBench::CheckChunks() {
  KVICK_RETURN_IF_ERROR(Run({.num_tokens = 2}));
  const std::vector<float> at_once(Logits(0).begin(), Logits(0).end());
  KVICK_RETURN_IF_ERROR(Run({}));
  KVICK_RETURN_IF_ERROR(cache_->Commit(std::move(plans_[0])));
  KVICK_RETURN_IF_ERROR(Run({.first_token = 1}));
  plans_.clear();
  KVICK_RETURN_IF_ERROR(cache_->Truncate(sequences_[0], depth_));
  if (SameBits(at_once, Logits(0))) return {};
  return Fail(ErrorCode::kInternal,
              "bench: at depth {}, two tokens at once give other bits than one after the other",
              depth_);
}

Contender ModelBench::Decode(int64_t num_sequences) {
  return {[this, num_sequences] { return Run({.num_sequences = num_sequences}); }, nullptr};
}

Contender ModelBench::Prefill() {
  return {[this] { return Run({.num_tokens = options_.num_new}); }, nullptr};
}

BenchWork ModelBench::decode_work(int64_t num_sequences) const {
  return Work({.num_sequences = num_sequences});
}

BenchWork ModelBench::prefill_work() const { return Work({.num_tokens = options_.num_new}); }

// Every weight once, and what each sequence has cached. A token meets the weights of the layers,
// the last one of a sequence the output too; attention multiplies as AttentionBench counts it.
BenchWork ModelBench::Work(const Step& step) const {
  const ModelInfo& info = model_.info();
  const KvLayout& layout = cache_->layout();
  const auto num_sequences = static_cast<double>(step.num_sequences);
  const auto num_new = static_cast<double>(step.num_tokens);
  const auto depth = static_cast<double>(depth_);
  BenchWork work;
  work.bytes = counts_.bytes + num_sequences * depth * static_cast<double>(layout.BytesPerToken());
  for (const auto& [kind, flops] : counts_.layer_flops) {
    work.flops[kind] += num_sequences * num_new * flops;
  }
  for (const auto& [kind, flops] : counts_.output_flops) {
    work.flops[kind] += num_sequences * flops;
  }
  const double num_seen = num_new * depth + num_new * (num_new + 1) / 2;  // by all new tokens
  const auto width = static_cast<double>(info.num_layers * info.num_heads * info.head_dim);
  work.flops[AttentionMultiplication(exec_.isa, layout.dtype)] +=
      num_sequences * 4 * width * num_seen;
  return work;
}

// What is left of the defaults for a model whose context is shorter. Errors: invalid_argument: the
// user asked for more than the context.
Result<ModelBenchOptions> WithinContext(ModelBenchOptions options, int64_t context_tokens) {
  if (options.num_new == 0) options.num_new = std::min(kDefaultNumNew, context_tokens);
  if (options.depths.empty()) {
    for (const int64_t depth : kDefaultDepths) {
      if (depth == 0 || depth + options.num_new <= context_tokens) options.depths.push_back(depth);
    }
  }
  std::ranges::sort(options.depths);
  const int64_t num_behind = std::max(options.num_new, kNumChecked);
  if (options.depths.back() + num_behind <= context_tokens) return options;
  return Fail(ErrorCode::kInvalidArgument,
              "--depth: expected at most {} and {} new tokens in a context of {} tokens, got {}",
              std::max<int64_t>(0, context_tokens - num_behind), num_behind, context_tokens,
              options.depths.back());
}

Status TimeDepth(int64_t depth, const BenchLimit& read, ModelBench& bench, BenchReport& report) {
  KVICK_RETURN_IF_ERROR(bench.GrowTo(depth));
  KVICK_RETURN_IF_ERROR(bench.CheckBits());
  std::vector<BenchCase> decode;
  for (const int64_t num : bench.options().sequences) {
    decode.push_back({"decode", fmt::format("depth {}, {}", depth, Counted(num, "sequence")),
                      bench.decode_work(num), bench.Decode(num), static_cast<double>(num)});
  }
  KVICK_RETURN_IF_ERROR(report.Time(read, std::move(decode)));
  return report.Time(read, {{"prefill", fmt::format("depth {}", depth), bench.prefill_work(),
                             bench.Prefill(), static_cast<double>(bench.options().num_new)}});
}

Outcome RunModel(const ModelBenchOptions& asked) {
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(asked));
  const Exec& exec = report.setup.exec;
  KVICK_ASSIGN_OR_RETURN(const BenchedModel model,
                         BenchedModel::Create(asked.model, exec.num_threads));
  KVICK_ASSIGN_OR_RETURN(const ModelBenchOptions options,
                         WithinContext(asked, model.context_tokens()));
  KVICK_ASSIGN_OR_RETURN(const auto bench, ModelBench::Create(options, report.setup, model.get()));
  KVICK_RETURN_IF_ERROR(bench->CheckLogits());
  KVICK_ASSIGN_OR_RETURN(const auto buffer, MakeReadBuffer(report.setup));
  const BenchLimit read = ReadBenchLimit(buffer, exec);
  for (const int64_t depth : options.depths) {
    KVICK_RETURN_IF_ERROR(TimeDepth(depth, read, *bench, report));
  }
  std::stable_partition(report.rows.begin(), report.rows.end(),
                        [](const BenchRow& row) { return row.name == "decode"; });
  return report.Finish(options);
}

}  // namespace

Verb AddBenchModel(CLI::App& app) {
  auto options = std::make_shared<ModelBenchOptions>();
  AddExample(app, "kvick bench model --geometry llama-3-8b --layers 4 --depth 0,16384");
  options->model.AddTo(app);
  app.add_option("--cache-type-k", options->cache_type,
                 "number type of the cache, also -ctk; auto is that of the weights")
      ->type_name("TYPE")
      ->transform(OneOf({"auto", "bf16", "f16", "f32"}))
      ->capture_default_str();
  app.add_option("--depth", options->depths,
                 "cached tokens of each sequence, rows for each; default: 0,4096,16384, as far as "
                 "the context of the model reaches")
      ->delimiter(',')
      ->transform(IntFrom(0, int64_t{1} << 24));
  app.add_option("--sequences", options->sequences,
                 "sequences that decode side by side, a row each")
      ->delimiter(',')
      ->transform(IntFrom(1, 1 << 12))
      ->capture_default_str();
  app.add_option("--new", options->num_new, "tokens that prefill adds; default: 512")
      ->transform(IntFrom(1, 1 << 16));
  options->AddTo(app);
  return [options] { return RunModel(*options); };
}

}  // namespace kvick::cli
