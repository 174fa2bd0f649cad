// A long random walk over every operation of the cache, held against a model that cannot be wrong:
// each sequence is a plain vector of tokens. Verify() and all contents are checked at every step.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kvick/kv_cache.h"

namespace kvick {
namespace {

constexpr int64_t kLayers = 2, kHeads = 2, kDim = 3;

struct ModelSequence {
  SequenceId id;
  std::vector<int> tokens;
};

class Walk {
 public:
  Walk(const KvConfig& config, uint32_t seed)
      : cache_(KvCache::Create(config).value()), random_(seed) {}

  void Step() {
    const int operation = Draw(0, 9);
    if (sequences_.empty() || operation == 0) {
      if (sequences_.size() < 6) sequences_.push_back({cache_->CreateSequence(), {}});
    } else if (operation <= 4) {
      const int num_tokens = Draw(1, 12);
      Append(Pick(), num_tokens);
    } else if (operation == 5) {
      const int num_tokens = Draw(1, 12);
      Abandon(Pick(), num_tokens);
    } else if (operation == 6) {
      Truncate(Pick());
    } else if (operation == 7) {
      Fork();
    } else if (operation == 8) {
      ModelSequence& sequence = Pick();
      ASSERT_TRUE(cache_->Reset(sequence.id).has_value());
      sequence.tokens.clear();
    } else {
      Drop();
    }
  }

  void Check() {
    const auto verified = cache_->Verify();
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
    std::set<std::pair<BlockId, int64_t>> filled;
    std::set<BlockId> held;
    const int64_t block_tokens = cache_->config().block_tokens;
    for (const ModelSequence& sequence : sequences_) {
      ASSERT_EQ(cache_->Length(sequence.id), static_cast<int64_t>(sequence.tokens.size()));
      CheckContents(cache_->View(sequence.id).value(), sequence.tokens);
      const auto blocks = cache_->Blocks(sequence.id).value();
      for (size_t i = 0; i < sequence.tokens.size(); ++i) {
        filled.insert({blocks[i / block_tokens], i % block_tokens});
      }
      held.insert(blocks.begin(), blocks.end());
    }
    const KvUsage usage = cache_->Usage();
    const int64_t token_bytes = cache_->layout().BytesPerToken();
    ASSERT_EQ(usage.used_bytes, static_cast<int64_t>(filled.size()) * token_bytes);
    ASSERT_EQ(usage.reserved_bytes, static_cast<int64_t>(held.size()) * block_tokens * token_bytes);
    ASSERT_EQ(usage.empty_bytes, usage.reserved_bytes - usage.used_bytes);
    ASSERT_EQ(cache_->num_free_blocks(),
              cache_->config().num_blocks - static_cast<int64_t>(held.size()));
  }

 private:
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  ModelSequence& Pick() { return sequences_[Draw(0, static_cast<int>(sequences_.size()) - 1)]; }

  static float Element(int token, int64_t layer, int64_t head, int64_t d) {
    return static_cast<float>(token * 100 + layer * 20 + head * 5 + d);
  }

  void Write(WritePlan& plan, const std::vector<int>& tokens) {
    std::vector<float> k(tokens.size() * kHeads * kDim), v(k.size());
    const TensorView shape{
        nullptr, DType::kF32, 3, {plan.num_tokens(), kHeads, kDim}, {kHeads * kDim, kDim, 1}};
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (size_t i = 0; i < k.size(); ++i) {
        k[i] = Element(tokens[i / (kHeads * kDim)], layer, i / kDim % kHeads, i % kDim);
        v[i] = -k[i];
      }
      TensorView k_view = shape, v_view = shape;
      k_view.data = reinterpret_cast<const std::byte*>(k.data());
      v_view.data = reinterpret_cast<const std::byte*>(v.data());
      ASSERT_TRUE(cache_->Write(plan, layer, k_view, v_view).has_value());
    }
  }

  std::vector<int> FreshTokens(int num_tokens) {
    std::vector<int> tokens(num_tokens);
    for (int& token : tokens) token = next_token_++ % 50000;
    return tokens;
  }

  void Append(ModelSequence& sequence, int num_tokens) {
    const int64_t num_free = cache_->num_free_blocks();
    auto plan = cache_->Reserve(sequence.id, num_tokens);
    if (!plan) {
      ASSERT_EQ(plan.error().code, ErrorCode::kExhausted);
      ASSERT_EQ(cache_->num_free_blocks(), num_free);
      return;
    }
    const std::vector<int> tokens = FreshTokens(num_tokens);
    Write(*plan, tokens);
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
    CheckContents(cache_->View(*plan).value(), sequence.tokens);
    ASSERT_TRUE(cache_->Commit(*std::move(plan)).has_value());
  }

  // While the plan is open others go on: forks of what it copied from are truncated and grown.
  void Abandon(ModelSequence& sequence, int num_tokens) {
    auto plan = cache_->Reserve(sequence.id, num_tokens);
    if (!plan) return;
    Write(*plan, FreshTokens(num_tokens));
    ModelSequence& other = Pick();
    if (other.id != sequence.id) Draw(0, 1) ? Truncate(other) : Append(other, Draw(1, 5));
    const auto verified = cache_->Verify();
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
  }

  void Truncate(ModelSequence& sequence) {
    sequence.tokens.resize(Draw(0, static_cast<int>(sequence.tokens.size())));
    ASSERT_TRUE(
        cache_->Truncate(sequence.id, static_cast<int64_t>(sequence.tokens.size())).has_value());
  }

  void Fork() {
    if (sequences_.size() >= 6) return;
    const ModelSequence& parent = Pick();
    sequences_.push_back({cache_->Fork(parent.id).value(), std::vector<int>(parent.tokens)});
  }

  void Drop() {
    std::swap(Pick(), sequences_.back());
    ASSERT_TRUE(cache_->Drop(sequences_.back().id).has_value());
    sequences_.pop_back();
  }

  static void CheckContents(const KvView& view, const std::vector<int>& tokens) {
    ASSERT_EQ(view.length, static_cast<int64_t>(tokens.size()));
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (int64_t head = 0; head < kHeads; ++head) {
        for (int64_t i = 0; i < view.length; ++i) {
          const auto* key = reinterpret_cast<const float*>(view.Key(layer, head, i));
          const auto* value = reinterpret_cast<const float*>(view.Value(layer, head, i));
          for (int64_t d = 0; d < kDim; ++d) {
            ASSERT_EQ(key[d], Element(tokens[i], layer, head, d));
            ASSERT_EQ(value[d], -key[d]);
          }
        }
      }
    }
  }

  std::unique_ptr<KvCache> cache_;
  std::mt19937 random_;
  std::vector<ModelSequence> sequences_;
  int next_token_ = 1;
};

KvConfig WalkConfig(int64_t block_tokens, int64_t num_blocks) {
  KvConfig config;
  config.num_layers = kLayers;
  config.num_kv_heads = kHeads;
  config.head_dim = kDim;
  config.dtype = DType::kF32;
  config.block_tokens = block_tokens;
  config.num_blocks = num_blocks;
  config.fill = KvFill::kNan;
  return config;
}

void RunWalk(const KvConfig& config, uint32_t seed) {
  Walk walk(config, seed);
  for (int step = 0; step < 1500; ++step) {
    walk.Step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
    walk.Check();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
  }
}

TEST(KvCacheWalk, PagedInAnyBlockSize) {
  for (const int64_t block_tokens : {1, 3, 4, 16}) {
    RunWalk(WalkConfig(block_tokens, 96 / block_tokens), static_cast<uint32_t>(block_tokens));
  }
}

TEST(KvCacheWalk, Contiguous) { RunWalk(WalkConfig(0, 0).Contiguous(5, 40), 7); }

}  // namespace
}  // namespace kvick
