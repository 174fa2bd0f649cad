#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/merge_queue.h"
#include "formats/tokenizer.h"
#include "formats/tokenizer_testing.h"

// The time to encode a text grows with its length and not faster, whatever it is made of.
namespace kvick {
namespace {

constexpr size_t kSmallBytes = size_t{64} << 10;
constexpr int kFactor = 8;

std::string Repeated(std::string_view part, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += part;
  return text;
}

// Characters of one block without an order, as no merge knows them.
std::string Cjk(size_t num_bytes) {
  std::string text;
  for (uint32_t state = 1; text.size() < num_bytes;) {
    state = state * 1664525 + 1013904223;
    AppendUtf8(0x4E00 + (state >> 8) % 0x5000, text);
  }
  return text;
}

TokenizerData SmallUnigram() {
  TokenizerData data = testing::SmallSentencePiece();
  data.encoder = EncoderKind::kUnigram;
  data.unknown_score = -25;
  testing::AddToken(data, "aa", TokenType::kNormal, -12);
  testing::AddToken(data, "aaaa", TokenType::kNormal, -13);
  return data;
}

// Merges that reach across whole texts: 2, 4, 8, ... of one character.
TokenizerData WithLongRuns(TokenizerData data) {
  const bool by_rank = data.encoder == EncoderKind::kMergesByRank;
  const std::string space = by_rank ? testing::SpellByteLevel(" ") : std::string(kSpaceMarker);
  for (const std::string& unit : {std::string("a"), space}) {
    for (size_t count = 2; count <= 64; count *= 2) {
      const std::string half = Repeated(unit, unit.size() * count / 2);
      if (by_rank) data.merges.push_back({half, half});
      testing::AddToken(data, half + half, TokenType::kNormal, -1.0f * static_cast<float>(count));
    }
  }
  return data;
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double EncodeSeconds(const Tokenizer& tokenizer, const std::string& text, int num_tries) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < num_tries; ++i) {
    const double start = CpuSeconds();
    const auto ids = tokenizer.Encode(text);
    best = std::min(best, CpuSeconds() - start);
    EXPECT_TRUE(ids.has_value());
  }
  return best;
}

// Eight times the text may take 24 times as long: caches and noise are in that; 64 times, as
// quadratic work does, is not.
void ExpectLinear(TokenizerData data) {
  const auto tokenizer = Tokenizer::Create(std::move(data));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const std::pair<const char*, std::function<std::string(size_t)>> texts[] = {
      {"one letter", [](size_t n) { return Repeated("a", n); }},
      {"spaces", [](size_t n) { return Repeated(" ", n); }},
      {"CJK", Cjk},
      {"code", [](size_t n) { return Repeated("  if (a[i] != 0x2A) return \"b\\n\";\n", n); }},
      {"bytes", [](size_t n) { return Repeated("\xFF", n); }}};
  for (const auto& [name, text] : texts) {
    const double small = EncodeSeconds(*tokenizer, text(kSmallBytes), 3);
    const double large = EncodeSeconds(*tokenizer, text(kFactor * kSmallBytes), 1);
    EXPECT_LT(large, 3 * kFactor * std::max(small, 1e-3)) << name;
  }
}

TEST(TokenizerGrowth, MergesByScore) { ExpectLinear(WithLongRuns(testing::SmallSentencePiece())); }

TEST(TokenizerGrowth, MergesByRank) {
  TokenizerData data = WithLongRuns(testing::SmallByteLevel());
  data.pretokenizer = {ByteLevelStep{}};  // a text is one piece
  data.merges.erase(data.merges.begin() + 4, data.merges.begin() + 6);
  ExpectLinear(std::move(data));
}

TEST(TokenizerGrowth, Unigram) { ExpectLinear(SmallUnigram()); }

// Pairs in no order come out as from a sorted list, also those that are pushed in between.
TEST(MergeQueue, GivesTheCheapestAndLeftmostPair) {
  const auto less = [](const MergeQueue::Pair& a, const MergeQueue::Pair& b) {
    return std::pair(a.cost, a.left) < std::pair(b.cost, b.left);
  };
  MergeQueue queue;
  uint32_t state = 7;
  const auto random = [&](uint32_t limit) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
  };
  for (const uint32_t num_costs : {1u, 3u, 1000u}) {
    queue.Reset(500);
    std::vector<MergeQueue::Pair> pairs;
    for (int i = 0; i < 2000; ++i) {
      if (i % 3 < 2) {
        pairs.push_back({static_cast<double>(random(num_costs)), random(1u << 30), 2, i});
        queue.Push(pairs.back());
        continue;
      }
      const auto first = std::ranges::min_element(pairs, less);
      const MergeQueue::Pair pair = queue.Pop();
      EXPECT_EQ(pair.left, first->left);
      EXPECT_EQ(pair.id, first->id);
      pairs.erase(first);
    }
    for (; !pairs.empty(); pairs.pop_back()) {
      std::ranges::sort(pairs, [&](const auto& a, const auto& b) { return less(b, a); });
      EXPECT_EQ(queue.Pop().id, pairs.back().id);
    }
    EXPECT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace kvick
