// kvick bench append: one new token into all layers, against concatenation and against memcpy.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/random_numbers.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "help.h"
#include "known_models.h"
#include "kvick/kv_cache.h"
#include "options.h"

namespace kvick::cli {
namespace {

struct AppendOptions : BenchOptions {
  std::string geometry = "llama-3-8b";
  std::string cache_type = "bf16";
  int64_t context_tokens = 1024;
  int64_t block_tokens = 16;

  KvConfig CacheGeometry() const {
    const KnownModel& model = *FindKnownModel(geometry);
    KvConfig config;
    config.num_layers = model.num_layers;
    config.num_kv_heads = model.num_kv_heads;
    config.head_dim = model.head_dim;
    config.dtype = ParseDType(cache_type);
    return config;
  }
};

// The keys and values of one token, [layer][K | V][K, D] f32.
class NewToken {
 public:
  explicit NewToken(const KvConfig& config)
      : heads_(config.num_kv_heads),
        dim_(config.head_dim),
        numbers_(static_cast<size_t>(2 * config.num_layers * heads_ * dim_)) {
    RandomNumbers{DType::kF32, static_cast<int64_t>(numbers_.size())}.WriteTo(
        reinterpret_cast<std::byte*>(numbers_.data()));
  }

  const float* key(int64_t layer) const { return numbers_.data() + 2 * layer * row_elements(); }
  const float* value(int64_t layer) const { return key(layer) + row_elements(); }
  TensorView View(const float* rows) const { return DenseF32(rows, {1, heads_, dim_}); }
  int64_t row_elements() const { return heads_ * dim_; }

 private:
  int64_t heads_, dim_;
  std::vector<float> numbers_;
};

// Appends to a sequence until the cache is full, then goes on from the context anew: what is
// written to is not in the caches of the machine.
class CacheAppend {
 public:
  static Result<std::unique_ptr<CacheAppend>> Create(const AppendOptions& options,
                                                     const BenchSetup& setup, int64_t block_tokens);

  Contender Timed();
  // Appends a token and reads it back.
  Status Check();

 private:
  CacheAppend(const KvConfig& config, int64_t context_tokens)
      : token_(config), context_tokens_(context_tokens) {}
  Status Append();
  bool HoldsToken(const KvView& view, int64_t layer, int64_t head) const;

  NewToken token_;
  int64_t context_tokens_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_;
};

// `block_tokens` 0 is one block for all.
Result<std::unique_ptr<CacheAppend>> CacheAppend::Create(const AppendOptions& options,
                                                         const BenchSetup& setup,
                                                         int64_t block_tokens) {
  KvConfig config = options.CacheGeometry();
  KVICK_ASSIGN_OR_RETURN(const KvLayout token, KvLayout::Create(config.Contiguous(1, 1)));
  const int64_t max_tokens =
      std::max(options.context_tokens + 1, setup.working_set_bytes / token.BytesPerToken());
  config.block_tokens = block_tokens > 0 ? block_tokens : max_tokens;
  config.num_blocks = CeilDiv(max_tokens, config.block_tokens);
  std::unique_ptr<CacheAppend> bench(new CacheAppend(config, options.context_tokens));
  KVICK_ASSIGN_OR_RETURN(bench->cache_, KvCache::Create(config));
  bench->sequence_ = bench->cache_->CreateSequence();
  const RandomTokens context{{&bench->sequence_, 1}, options.context_tokens};
  KVICK_RETURN_IF_ERROR(context.AppendTo(*bench->cache_));
  return bench;
}

Status CacheAppend::Append() {
  KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache_->Reserve(sequence_, 1));
  for (int64_t layer = 0; layer < cache_->layout().num_layers; ++layer) {
    KVICK_RETURN_IF_ERROR(cache_->Write(plan, layer, token_.View(token_.key(layer)),
                                        token_.View(token_.value(layer))));
  }
  return cache_->Commit(std::move(plan));
}

bool CacheAppend::HoldsToken(const KvView& view, int64_t layer, int64_t head) const {
  const KvLayout& layout = view.layout;
  const auto num_bytes = static_cast<size_t>(layout.head_dim * DTypeBytes(layout.dtype));
  std::vector<std::byte> key(num_bytes), value(num_bytes);
  const int64_t offset = head * layout.head_dim;
  ConvertFromF32(layout.dtype, token_.key(layer) + offset, layout.head_dim, key.data());
  ConvertFromF32(layout.dtype, token_.value(layer) + offset, layout.head_dim, value.data());
  const int64_t last = view.length - 1;
  return std::memcmp(view.Key(layer, head, last), key.data(), num_bytes) == 0 &&
         std::memcmp(view.Value(layer, head, last), value.data(), num_bytes) == 0;
}

Status CacheAppend::Check() {
  KVICK_RETURN_IF_ERROR(Append());
  KVICK_ASSIGN_OR_RETURN(const KvView view, cache_->View(sequence_));
  for (int64_t layer = 0; layer < view.layout.num_layers; ++layer) {
    for (int64_t head = 0; head < view.layout.num_kv_heads; ++head) {
      if (view.length == context_tokens_ + 1 && HoldsToken(view, layer, head)) continue;
      return Fail(ErrorCode::kInternal,
                  "bench: layer {}, head {} of {} tokens does not hold what was appended", layer,
                  head, view.length);
    }
  }
  return {};
}

Contender CacheAppend::Timed() {
  return {[this] { return Append(); },
          [this]() -> Status {
            KVICK_ASSIGN_OR_RETURN(const int64_t length, cache_->Length(sequence_));
            const KvConfig& config = cache_->config();
            if (length < config.num_blocks * config.block_tokens) return {};
            return cache_->Truncate(sequence_, context_tokens_);
          }};
}

// The cache's part of a decode step: a token appended, and the usage read. Of keys and values so
// small that the time is that of the tables. Its pool may be of any size: only what is used is
// backed.
class PoolStep {
 public:
  static Result<std::unique_ptr<PoolStep>> Create(int64_t num_blocks) {
    KvConfig config;
    config.num_layers = config.num_kv_heads = 1;
    config.head_dim = 16;
    config.block_tokens = 1;
    config.num_blocks = num_blocks;
    config.backing = KvBacking::kOnDemand;
    std::unique_ptr<PoolStep> step(new PoolStep(config));
    KVICK_ASSIGN_OR_RETURN(step->cache_, KvCache::Create(config));
    step->sequence_ = step->cache_->CreateSequence();
    return step;
  }

  Contender Timed() {
    return {[this] { return Step(); },
            [this]() -> Status {
              KVICK_ASSIGN_OR_RETURN(const int64_t length, cache_->Length(sequence_));
              return length < kMaxTokens ? Status() : cache_->Reset(sequence_);
            }};
  }
  double token_bytes() const { return static_cast<double>(cache_->layout().BytesPerToken()); }

 private:
  static constexpr int64_t kMaxTokens = 1024;

  explicit PoolStep(const KvConfig& config) : token_(config) {}
  Status Step() {
    KVICK_ASSIGN_OR_RETURN(WritePlan plan, cache_->Reserve(sequence_, 1));
    KVICK_RETURN_IF_ERROR(
        cache_->Write(plan, 0, token_.View(token_.key(0)), token_.View(token_.value(0))));
    KVICK_RETURN_IF_ERROR(cache_->Commit(std::move(plan)));
    if (cache_->Usage().used_bytes > 0) return {};
    return Fail(ErrorCode::kInternal, "bench: an appended token is not in use");
  }

  NewToken token_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_;
};

// Pools that differ by a factor of 2^16: a step must take as long in both.
constexpr int64_t kSmallPoolBlocks = int64_t{1} << 11, kLargePoolBlocks = int64_t{1} << 27;

// The cache as it is often written first: for each layer a tensor of keys and one of values,
// [S, K, D], and at each step longer ones into which the old are copied.
class Concatenation {
 public:
  Concatenation(const KvConfig& config, int64_t context_tokens)
      : token_(config),
        dtype_(config.dtype),
        old_bytes_(context_tokens * row_bytes()),
        tensors_(static_cast<size_t>(2 * config.num_layers)) {
    for (auto& tensor : tensors_) tensor.resize(static_cast<size_t>(old_bytes_));
  }

  // The longer tensors are dropped, so that each pass is a step behind the same context.
  Contender Timed() {
    return {[this]() -> Status {
              for (size_t i = 0; i < tensors_.size(); ++i) {
                const auto num_bytes = static_cast<size_t>(old_bytes_ + row_bytes());
                const auto longer = std::make_unique_for_overwrite<std::byte[]>(num_bytes);
                std::memcpy(longer.get(), tensors_[i].data(), tensors_[i].size());
                const auto layer = static_cast<int64_t>(i / 2);
                const float* row = i % 2 == 0 ? token_.key(layer) : token_.value(layer);
                ConvertFromF32(dtype_, row, token_.row_elements(), longer.get() + old_bytes_);
              }
              return {};
            },
            nullptr};
  }

 private:
  int64_t row_bytes() const { return token_.row_elements() * DTypeBytes(dtype_); }

  NewToken token_;
  DType dtype_;
  int64_t old_bytes_;
  std::vector<std::vector<std::byte>> tensors_;
};

// memcpy of as many bytes, from where they are at hand to memory that is in no cache.
Result<BenchLimit> CopyLimit(const BenchSetup& setup, int64_t token_bytes) {
  const int64_t num_tokens = std::max<int64_t>(1, setup.working_set_bytes / token_bytes);
  KVICK_ASSIGN_OR_RETURN(MappedRegion memory,
                         MappedRegion::Create(num_tokens * token_bytes, Backing::kUpFront));
  auto target = std::make_shared<MappedRegion>(std::move(memory));
  BenchLimit limit{.name = "memcpy", .work = static_cast<double>(token_bytes)};
  limit.contender.pass =
      [target = std::move(target), num_tokens, step = int64_t{0},
       source = std::vector<std::byte>(static_cast<size_t>(token_bytes))]() mutable -> Status {
    std::memcpy(target->data() + step * static_cast<int64_t>(source.size()), source.data(),
                source.size());
    step = (step + 1) % num_tokens;
    return {};
  };
  return limit;
}

Outcome RunAppend(const AppendOptions& options) {
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(options));
  report.setup.exec.num_threads = 1;  // as Write is
  const KvConfig geometry = options.CacheGeometry();
  KVICK_ASSIGN_OR_RETURN(const KvLayout layout, KvLayout::Create(geometry));
  const auto token_bytes = static_cast<double>(layout.BytesPerToken());
  KVICK_ASSIGN_OR_RETURN(const BenchLimit copy, CopyLimit(report.setup, layout.BytesPerToken()));
  std::vector<BenchCase> cases = {
      {"memcpy", fmt::format("{} bytes", layout.BytesPerToken()), {token_bytes}, copy.contender}};
  std::vector<std::unique_ptr<CacheAppend>> appends;
  for (const int64_t block_tokens : {options.block_tokens, int64_t{0}}) {
    KVICK_ASSIGN_OR_RETURN(auto append, CacheAppend::Create(options, report.setup, block_tokens));
    KVICK_RETURN_IF_ERROR(append->Check());
    cases.push_back({"append", LayoutName(block_tokens), {token_bytes}, append->Timed()});
    appends.push_back(std::move(append));
  }
  Concatenation concatenation(geometry, options.context_tokens);
  cases.push_back({"concatenate",
                   fmt::format("behind {} tokens", options.context_tokens),
                   {token_bytes},
                   concatenation.Timed()});
  const size_t num_copying = cases.size();
  std::vector<std::unique_ptr<PoolStep>> steps;
  for (const int64_t num_blocks : {kSmallPoolBlocks, kLargePoolBlocks}) {
    KVICK_ASSIGN_OR_RETURN(auto step, PoolStep::Create(num_blocks));
    cases.push_back({"step",
                     fmt::format("pool of {} blocks", num_blocks),
                     {step->token_bytes()},
                     step->Timed()});
    steps.push_back(std::move(step));
  }
  KVICK_RETURN_IF_ERROR(report.Time(copy, std::move(cases)));
  report.AddRatio("step: large pool / small pool", report.rows[num_copying + 1],
                  report.rows[num_copying]);
  for (size_t i = 1; i < num_copying; ++i) {
    const BenchRow& row = report.rows[i];
    report.AddRatio(fmt::format("memcpy / {} {}", row.name, row.variant), report.rows[0], row);
  }
  return report.Finish(options);
}

}  // namespace

Verb AddBenchAppend(CLI::App& app) {
  auto options = std::make_shared<AppendOptions>();
  AddExample(app, "kvick bench append --context 4096");
  AddGeometryOption(app, options->geometry);
  app.add_option("--context", options->context_tokens, "tokens that the cache holds already")
      ->transform(IntFrom(1, int64_t{1} << 24))
      ->capture_default_str();
  app.add_option("--block-tokens", options->block_tokens,
                 "tokens in a block, compared with one block for all")
      ->transform(IntFrom(1, int64_t{1} << 24))
      ->capture_default_str();
  AddCacheTypeOption(app, options->cache_type);
  options->AddTimingTo(app);
  return [options] { return RunAppend(*options); };
}

}  // namespace kvick::cli
