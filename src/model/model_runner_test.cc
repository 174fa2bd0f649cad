#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/allocation_counter.h"
#include "base/exec.h"
#include "base/isa.h"
#include "base/same_bits.h"
#include "kvick/model.h"
#include "model/forward_ref.h"
#include "model/model_parts.h"
#include "model/random_llama_testing.h"

namespace kvick {
namespace {

using testing::OpenedRandomLlama;
using testing::RandomLlama;
using testing::RandomTokens;

// One way to cut the work.
struct Cut {
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 1 << 20;
  int num_threads = 1;
  Precision precision = Precision::kStandard;
};

std::unique_ptr<ModelRunner> MakeRunner(const Model& model, const Exec& exec, DType kv_dtype) {
  RunnerOptions options;
  options.kv_dtype = kv_dtype;
  options.exec = OptionsOf(exec);
  return ModelRunner::Create(model, options).value();
}

std::unique_ptr<KvCache> MakeCache(const Model& model, DType dtype, int64_t block_tokens) {
  KvConfig config = model.info().KvGeometry(dtype);
  config.block_tokens = block_tokens;
  config.num_blocks = 1024 / block_tokens + 8;
  config.fill = KvFill::kNan;
  return KvCache::Create(config).value();
}

void Append(ModelRunner& runner, KvCache& cache, SequenceId sequence,
            std::span<const int32_t> tokens, std::span<float> logits) {
  auto plan = cache.Reserve(sequence, static_cast<int64_t>(tokens.size())).value();
  const SequenceChunk chunk{&plan, tokens};
  const auto status = runner.Run(cache, {&chunk, 1}, LogitsOf::kAll, logits);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  ASSERT_TRUE(cache.Commit(std::move(plan)).has_value());
}

// Logits [T, V] of a text through a fresh cache.
std::vector<float> RunCut(const Model& model, Isa isa, DType kv_dtype,
                          std::span<const int32_t> tokens, const Cut& cut) {
  const auto runner = MakeRunner(model, {isa, cut.num_threads, cut.precision}, kv_dtype);
  const auto cache = MakeCache(model, kv_dtype, cut.block_tokens);
  const SequenceId sequence = cache->CreateSequence();
  const auto width = static_cast<size_t>(model.info().vocab_size);
  std::vector<float> logits(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); i += static_cast<size_t>(cut.chunk_tokens)) {
    const size_t num = std::min(static_cast<size_t>(cut.chunk_tokens), tokens.size() - i);
    Append(*runner, *cache, sequence, tokens.subspan(i, num),
           std::span(logits).subspan(i * width, num * width));
  }
  return logits;
}

double RelativeError(std::span<const float> got, std::span<const double> wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return std::sqrt(difference / norm);
}

constexpr RandomLlama kGeometries[] = {
    {.hidden_size = 96, .num_heads = 9, .num_kv_heads = 3, .head_dim = 32},
    {.hidden_size = 64,
     .intermediate_size = 160,
     .num_heads = 8,
     .num_kv_heads = 1,
     .head_dim = 20},
    {.num_layers = 1, .hidden_size = 128, .num_heads = 2, .num_kv_heads = 2, .head_dim = 80},
    {.num_heads = 16, .num_kv_heads = 4, .head_dim = 2},
    {.num_heads = 16, .num_kv_heads = 8, .head_dim = 4},
    {.num_heads = 16, .num_kv_heads = 16, .head_dim = 6}};

// Of logits with f32 keys and values: all that is rounded below f32 are activations that meet bf16
// weights, to 8 bits or, as the sum of two bf16, to 16.
double MaxError(WeightType weights, Precision precision) {
  if (FormatOf(weights).is_quantized()) return 5e-4;  // activations of 16 bits
  if (weights != WeightType::kBF16) return 1e-5;
  return precision == Precision::kHigh ? 1e-4 : 1e-2;
}

TEST(ModelRunner, IsNearTheDoublePrecisionReference) {
  for (const RandomLlama& geometry : kGeometries) {
    for (const WeightType type :
         {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
      RandomLlama llama = geometry;
      llama.type = type;
      const OpenedRandomLlama opened(llama);
      const std::vector<int32_t> tokens = RandomTokens(40, llama.vocab_size, 5);
      const std::vector<double> wanted = ForwardRef(opened.model->parts().file, tokens);
      for (const Precision precision : {Precision::kStandard, Precision::kHigh}) {
        for (const Isa isa : AvailableIsas()) {
          const auto logits =
              RunCut(*opened.model, isa, DType::kF32, tokens, {.precision = precision});
          EXPECT_LT(RelativeError(logits, wanted), MaxError(type, precision))
              << IsaName(isa) << " " << FormatOf(type).name;
        }
      }
    }
  }
}

// A file of OLMo 2: the norms of a Llama end branches in place of beginning them, and queries and
// keys are normalized as whole rows.
TEST(ModelRunner, NormsOfOlmo2AreNearTheDoublePrecisionReference) {
  const RandomLlama llama{.architecture = "olmo2"};
  testing::GgufSpec spec = testing::RandomGguf(llama);
  std::mt19937 random(7);
  for (testing::GgufSpec::Tensor& tensor : spec.tensors) {
    if (tensor.name.ends_with("attn_norm.weight")) {
      tensor.name.replace(tensor.name.find("attn_norm"), 9, "post_attention_norm");
    } else if (tensor.name.ends_with("ffn_norm.weight")) {
      tensor.name.replace(tensor.name.find("ffn_norm"), 8, "post_ffw_norm");
    }
  }
  for (int64_t layer = 0; layer < llama.num_layers; ++layer) {
    for (const auto& [name, num_heads] :
         {std::pair{"attn_q_norm", llama.num_heads}, {"attn_k_norm", llama.num_kv_heads}}) {
      const int64_t width = num_heads * llama.head_dim;
      spec.tensors.push_back(
          {.name = "blk." + std::to_string(layer) + "." + name + ".weight",
           .dims = {static_cast<uint64_t>(width)},
           .data = testing::RandomWeightBytes(random, WeightType::kF32, width, 1.0)});
    }
  }
  const std::string bytes = spec.Build();
  const auto model = Model::Parse(std::as_bytes(std::span(bytes)), "olmo2").value();
  const ModelSpec& read = model->parts().file.spec();
  EXPECT_FALSE(read.layers[0].norm_before);
  EXPECT_EQ(read.layers[0].qk_norm, QkNorm::kWidth);
  const std::vector<int32_t> tokens = RandomTokens(40, llama.vocab_size, 5);
  const std::vector<double> wanted = ForwardRef(model->parts().file, tokens);
  for (const Isa isa : AvailableIsas()) {
    EXPECT_LT(RelativeError(RunCut(*model, isa, DType::kF32, tokens, {}), wanted), 1e-5)
        << IsaName(isa);
  }
}

TEST(ModelRunner, IsasOfTheSameNumericsGiveTheSameBits) {
  for (const RandomLlama& geometry : kGeometries) {
    for (const WeightType type :
         {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
      RandomLlama llama = geometry;
      llama.type = type;
      const OpenedRandomLlama opened(llama);
      const std::vector<int32_t> tokens = RandomTokens(40, llama.vocab_size, 6);
      for (const Precision precision : {Precision::kStandard, Precision::kHigh}) {
        std::map<NumericOrder, std::vector<float>> logits_of_order;
        for (const Isa isa : AvailableIsas()) {
          const auto logits =
              RunCut(*opened.model, isa, DType::kBF16, tokens, {.precision = precision});
          const auto first = logits_of_order.try_emplace(OrderOf(isa), logits).first;
          EXPECT_TRUE(SameBits(logits, first->second))
              << IsaName(isa) << " " << FormatOf(type).name;
        }
      }
    }
  }
}

void ExpectCutsChangeNoBit(const Model& model, Isa isa, DType kv_dtype) {
  const std::vector<int32_t> tokens = RandomTokens(70, model.info().vocab_size, 6);
  const auto wanted = RunCut(model, isa, kv_dtype, tokens, {1024});
  for (const Cut& cut : {Cut{16, 1, 1}, Cut{64, 7, 2}, Cut{5, 64, 2}, Cut{1024, 1, 3}}) {
    EXPECT_TRUE(SameBits(wanted, RunCut(model, isa, kv_dtype, tokens, cut)))
        << "blocks of " << cut.block_tokens << ", chunks of " << cut.chunk_tokens;
  }
  const auto runner = MakeRunner(model, {isa, 2}, kv_dtype);
  std::vector<float> uncached(wanted.size());
  ASSERT_TRUE(runner->RunUncached(tokens, LogitsOf::kAll, uncached).has_value());
  EXPECT_TRUE(SameBits(wanted, uncached)) << "without cache";
}

TEST(ModelRunner, CutsAndCachesChangeNoBit) {
  const RandomLlama &usual = kGeometries[0], &small_heads = kGeometries[3];
  for (RandomLlama llama : {usual, small_heads}) {
    for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kQ8_0}) {
      llama.type = type;
      const OpenedRandomLlama opened(llama);
      for (const Isa isa : AvailableIsas()) {
        for (const DType kv_dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
          SCOPED_TRACE(std::string(IsaName(isa)) + " " + std::string(FormatOf(type).name) +
                       ", cache " + std::string(DTypeName(kv_dtype)) + ", heads of " +
                       std::to_string(llama.head_dim));
          ExpectCutsChangeNoBit(*opened.model, isa, kv_dtype);
        }
      }
    }
  }
}

TEST(ModelRunner, OthersInTheBatchChangeNoBit) {
  const OpenedRandomLlama opened({.type = WeightType::kBF16});
  const Model& model = *opened.model;
  const auto width = static_cast<size_t>(model.info().vocab_size);
  constexpr int64_t kLengths[] = {33, 1, 16, 70, 5};
  for (const Isa isa : AvailableIsas()) {
    const auto runner = MakeRunner(model, {isa, 2}, DType::kBF16);
    const auto cache = MakeCache(model, DType::kBF16, 16);
    std::vector<std::vector<int32_t>> texts;
    std::vector<SequenceId> sequences;
    for (const int64_t length : kLengths) {
      texts.push_back(RandomTokens(length, model.info().vocab_size, texts.size() + 50));
      sequences.push_back(cache->CreateSequence());
    }
    // Each text in two passes, together with all others: a part of it, then the rest.
    std::vector<std::vector<float>> together(texts.size());
    for (const bool is_rest : {false, true}) {
      std::vector<WritePlan> plans;
      std::vector<SequenceChunk> chunks;
      std::vector<size_t> owners;
      plans.reserve(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::span<const int32_t> text = texts[i];
        const size_t first_part = text.size() - text.size() / 3;
        const auto part = is_rest ? text.subspan(first_part) : text.first(first_part);
        if (part.empty()) continue;
        plans.push_back(cache->Reserve(sequences[i], static_cast<int64_t>(part.size())).value());
        chunks.push_back({&plans.back(), part});
        owners.push_back(i);
      }
      int64_t num_tokens = 0;
      for (const SequenceChunk& chunk : chunks)
        num_tokens += static_cast<int64_t>(chunk.tokens.size());
      std::vector<float> logits(static_cast<size_t>(num_tokens) * width);
      ASSERT_TRUE(runner->Run(*cache, chunks, LogitsOf::kAll, logits).has_value());
      auto next = logits.begin();
      for (size_t i = 0; i < chunks.size(); ++i) {
        const auto end = next + static_cast<int64_t>(chunks[i].tokens.size() * width);
        together[owners[i]].insert(together[owners[i]].end(), next, end);
        next = end;
      }
      for (WritePlan& plan : plans) ASSERT_TRUE(cache->Commit(std::move(plan)).has_value());
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_TRUE(SameBits(together[i], RunCut(model, isa, DType::kBF16, texts[i], {})))
          << IsaName(isa) << ", text " << i;
    }
  }
}

TEST(ModelRunner, TruncateRegrowAndForkChangeNoBit) {
  const OpenedRandomLlama opened({.type = WeightType::kBF16});
  const Model& model = *opened.model;
  const auto width = static_cast<size_t>(model.info().vocab_size);
  const auto a = RandomTokens(60, model.info().vocab_size, 1);
  auto b = RandomTokens(60, model.info().vocab_size, 2);
  std::copy_n(a.begin(), 21, b.begin());  // the same beginning, cut inside a block
  for (const Isa isa : AvailableIsas()) {
    const auto wanted = RunCut(model, isa, DType::kBF16, b, {});
    const auto rest = std::span(wanted).subspan(21 * width);
    const auto runner = MakeRunner(model, {isa, 2}, DType::kBF16);
    const auto cache = MakeCache(model, DType::kBF16, 16);
    std::vector<float> logits(60 * width), regrown(39 * width), forked(39 * width);
    const SequenceId first = cache->CreateSequence();
    Append(*runner, *cache, first, a, logits);
    ASSERT_TRUE(cache->Truncate(first, 21).has_value());
    const SequenceId second = cache->Fork(first).value();
    Append(*runner, *cache, first, std::span(b).subspan(21), regrown);
    Append(*runner, *cache, second, std::span(b).subspan(21), forked);
    EXPECT_TRUE(SameBits(rest, regrown)) << IsaName(isa);
    EXPECT_TRUE(SameBits(rest, forked)) << IsaName(isa);
    EXPECT_TRUE(cache->Verify().has_value());
  }
}

TEST(ModelRunner, ADecodeStepAllocatesNothing) {
  for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kQ8_0}) {
    const OpenedRandomLlama opened({.type = type});
    for (const Isa isa : AvailableIsas()) {
      const auto runner = MakeRunner(*opened.model, {isa, 2}, DType::kBF16);
      const auto cache = MakeCache(*opened.model, DType::kBF16, 16);
      const SequenceId sequence = cache->CreateSequence();
      std::vector<float> logits(static_cast<size_t>(opened.model->info().vocab_size));
      const auto step = [&](int32_t token) {
        auto plan = cache->Reserve(sequence, 1);
        const SequenceChunk chunk{&*plan, {&token, 1}};
        const bool ran = runner->Run(*cache, {&chunk, 1}, LogitsOf::kLast, logits).has_value();
        return ran && cache->Commit(*std::move(plan)).has_value();
      };
      ASSERT_TRUE(step(1));  // threads start once
      const int64_t before = NumAllocations();
      bool all_ran = true;
      for (int32_t token = 0; token < 50; ++token)
        all_ran = step(token) && all_ran;  // 3 new blocks
      EXPECT_EQ(NumAllocations() - before, 0) << IsaName(isa) << " " << FormatOf(type).name;
      EXPECT_TRUE(all_ran);
    }
  }
}

// Sizes far above any memory are an error or cost nothing until they are used.
TEST(ModelRunner, TakesNoMemoryForSizesAlone) {
  const OpenedRandomLlama opened({});
  RunnerOptions options{.exec = {.isa = "scalar", .num_threads = 1}};
  for (const int64_t max : {int64_t{1} << 28, int64_t{1} << 31}) {
    options.max_sequences = max;
    options.max_batch_tokens = max;
    const auto runner = ModelRunner::Create(*opened.model, options);
    if (!runner) {
      EXPECT_EQ(runner.error().code, ErrorCode::kExhausted) << runner.error().message;
    }
  }
  options.max_sequences = (int64_t{1} << 31) + 1;
  EXPECT_EQ(ModelRunner::Create(*opened.model, options).error().message,
            "model: max_sequences: expected 1 to 2147483648, got 2147483649");
}

// The counter itself: it must see what it is there to see.
TEST(AllocationCounter, Counts) {
  const int64_t before = NumAllocations();
  std::function<void()> fill = [] { std::vector<int> numbers(1000); };
  fill();
  EXPECT_GE(NumAllocations() - before, 1);
}

TEST(ModelRunner, RefusesWhatDoesNotFit) {
  const OpenedRandomLlama opened({});
  const Model& model = *opened.model;
  const auto runner = MakeRunner(model, {Isa::kScalar, 1}, DType::kF32);
  const auto cache = MakeCache(model, DType::kF32, 16);
  std::vector<float> logits(2 * 100);
  const auto run = [&](KvCache& on, std::vector<int32_t> tokens, int64_t num_planned,
                       std::span<float> out) {
    auto plan = on.Reserve(on.CreateSequence(), num_planned).value();
    const SequenceChunk chunk{&plan, tokens};
    const auto status = runner->Run(on, {&chunk, 1}, LogitsOf::kAll, out);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(run(*cache, {1, 2}, 2, logits), "");
  EXPECT_EQ(run(*cache, {1, 100}, 2, logits), "model: token ids: expected 0 to 99, got 100");
  EXPECT_EQ(run(*cache, {1, -1}, 2, logits), "model: token ids: expected 0 to 99, got -1");
  EXPECT_EQ(run(*cache, {1, 2}, 3, logits), "model: expected 3 tokens, as the plan has, got 2");
  EXPECT_EQ(run(*cache, {1, 2}, 2, std::span(logits).first(100)),
            "model: expected memory for 200 logits, got 100");
  const std::vector<int32_t> tokens{1};
  const SequenceChunk unplanned{nullptr, tokens};
  EXPECT_EQ(runner->Run(*cache, {&unplanned, 1}, LogitsOf::kLast, logits).error().message,
            "model: expected a plan for each chunk, got none");
  const auto twin = MakeCache(model, DType::kF32, 16);
  auto plan = cache->Reserve(cache->CreateSequence(), 1).value();
  const SequenceChunk elsewhere{&plan, tokens};
  const auto ran =
      runner->Run(*twin, {&elsewhere, 1}, LogitsOf::kLast, std::span(logits).first(100));
  ASSERT_FALSE(ran.has_value());
  EXPECT_EQ(ran.error().code, ErrorCode::kInvalidArgument) << ran.error().message;
  EXPECT_NE(ran.error().message.find("another cache"), std::string::npos) << ran.error().message;
  const auto other = MakeCache(model, DType::kF16, 16);
  EXPECT_NE(run(*other, {1, 2}, 2, logits).find("model: expected a cache of"), std::string::npos);
}

}  // namespace
}  // namespace kvick
