// The promise, at the level of attention: equal bits however the same work is cut, on every isa.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "attention/attention_test_util.h"
#include "kvick/attention.h"

namespace kvick {
namespace {

struct Cut {
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 1 << 20;  // new tokens a step
  int num_threads = 1;
};

// All tokens of `data` through a fresh cache, `chunk_tokens` at a time. Returns out [T, H, D].
std::vector<float> RunCut(AttentionConfig config, const RandomSequence& data, const Cut& cut) {
  config.exec.num_threads = cut.num_threads;
  auto attention = Attention::Create(config).value();
  auto cache = MakeTestCache(config, cut.block_tokens, data.num_tokens);
  const SequenceId sequence = cache->CreateSequence();
  const int64_t row_floats = config.num_heads * config.head_dim;
  std::vector<float> out(data.q.size());
  for (int64_t begin = 0; begin < data.num_tokens; begin += cut.chunk_tokens) {
    const int64_t end = std::min(begin + cut.chunk_tokens, data.num_tokens);
    AppendTokens(*cache, sequence, data, begin, end);
    const AttentionQuery query{cache->View(sequence).value(), end - begin};
    const auto status = attention->Run(kTestLayer, {&query, 1},
                                       DenseF32(data.q.data() + begin * row_floats,
                                                {end - begin, config.num_heads, config.head_dim}),
                                       DenseF32(out.data() + begin * row_floats,
                                                {end - begin, config.num_heads, config.head_dim}));
    EXPECT_TRUE(status.has_value());
  }
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  int64_t num_heads, num_kv_heads, head_dim, num_tokens;
};

AttentionConfig ConfigOf(const Case& c, Isa isa, DType dtype) {
  return {
      c.num_heads, c.num_kv_heads, c.head_dim, dtype, 0, {.isa = IsaName(isa), .num_threads = 1}};
}

constexpr Case kCases[] = {{9, 3, 64, 40},  {32, 8, 128, 20}, {8, 1, 16, 520},
                           {4, 2, 18, 530}, {2, 2, 100, 70},  {2, 2, 8, 1030},
                           {6, 2, 2, 530},  {8, 1, 4, 70},    {4, 4, 6, 520}};

// Windows that begin inside a chunk, a block, a group of lanes; of one token; longer than the
// sequence.
struct WindowCase {
  Case shape;
  int64_t window;
  float soft_cap;
};

constexpr WindowCase kWindowCases[] = {{{4, 2, 32, 1100}, 600, 0}, {{6, 2, 64, 530}, 1, 0},
                                       {{2, 1, 18, 70}, 5, 3},     {{8, 1, 16, 1040}, 512, 0},
                                       {{4, 4, 8, 300}, 1000, 2},  {{9, 3, 64, 550}, 13, 1},
                                       {{2, 2, 128, 600}, 77, 0}};

AttentionConfig ConfigOf(const WindowCase& c, Isa isa, DType dtype) {
  AttentionConfig config = ConfigOf(c.shape, isa, dtype);
  config.soft_cap = c.soft_cap;
  config.windows = {0, c.window};
  return config;
}

void ExpectNoCutChangesABit(const AttentionConfig& config, int64_t num_tokens,
                            std::span<const Cut> cuts) {
  const RandomSequence data(config, num_tokens, 42);
  const std::vector<float> wanted = RunCut(config, data, {num_tokens});
  for (const Cut& cut : cuts) {
    ASSERT_TRUE(SameBits(wanted, RunCut(config, data, cut)))
        << config.exec.isa << " " << DTypeName(config.dtype) << ", H " << config.num_heads << ", D "
        << config.head_dim << ": blocks of " << cut.block_tokens << ", chunks of "
        << cut.chunk_tokens << ", " << cut.num_threads << " threads";
  }
}

TEST(AttentionExactness, BlocksChunksAndThreadsChangeNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const Case& c : kCases) {
      const Cut cuts[] = {{16},      {64, 64},   {7, 7, 2},   {c.num_tokens, 1, 2}, {16, 1, 1},
                          {7, 1, 1}, {16, 1, 3}, {1, 100, 2}, {48, 37, 5}};
      ExpectNoCutChangesABit(ConfigOf(c, isa, dtype), c.num_tokens, cuts);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST(AttentionExactness, WithWindowsAndSoftCapsBlocksChunksAndThreadsChangeNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const WindowCase& c : kWindowCases) {
      const Cut cuts[] = {{16}, {7, 7, 2}, {16, 1, 1}, {48, 37, 3}};
      ExpectNoCutChangesABit(ConfigOf(c, isa, dtype), c.shape.num_tokens, cuts);
      ASSERT_FALSE(HasFatalFailure()) << "window " << c.window;
    }
  }
}

TEST(AttentionExactness, AWindowThatHoldsTheSequenceChangesNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    const Case c{4, 2, 32, 530};
    const AttentionConfig config = ConfigOf(c, isa, dtype);
    const RandomSequence data(config, c.num_tokens, 5);
    EXPECT_TRUE(SameBits(RunCut(config, data, {}),
                         RunCut(ConfigOf(WindowCase{c, c.num_tokens, 0}, isa, dtype), data, {})))
        << IsaName(isa) << " " << DTypeName(dtype);
  }
}

// The last tokens of `data` in one pass; nothing before `begin` may be read.
std::vector<float> RunLast(const AttentionConfig& config, const RandomSequence& data,
                           int64_t num_new, int64_t begin) {
  auto attention = Attention::Create(config).value();
  auto cache = MakeTestCache(config, 16, data.num_tokens);
  const SequenceId sequence = cache->CreateSequence();
  AppendTokens(*cache, sequence, data, 0, data.num_tokens);
  AttentionQuery query{cache->View(sequence).value(), num_new};
  query.kv.begin = begin;
  const int64_t num_floats = num_new * config.num_heads * config.head_dim;
  std::vector<float> out(num_floats);
  const float* q = data.q.data() + static_cast<int64_t>(data.q.size()) - num_floats;
  EXPECT_TRUE(attention->Run(kTestLayer, {&query, 1},
                             DenseF32(q, {num_new, config.num_heads, config.head_dim}),
                             DenseF32(out.data(), {num_new, config.num_heads, config.head_dim})));
  return out;
}

TEST(AttentionExactness, NothingBeforeTheWindowIsRead) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    for (const WindowCase& c : kWindowCases) {
      const AttentionConfig config = ConfigOf(c, isa, dtype);
      const RandomSequence data(config, c.shape.num_tokens, 6);
      for (const int64_t num_new : {1, 9}) {
        const int64_t begin = std::max<int64_t>(0, data.num_tokens - num_new + 1 - c.window);
        RandomSequence overwritten = data;
        const int64_t num = begin * config.num_kv_heads * config.head_dim;
        constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
        std::fill_n(overwritten.k.begin(), num, kNan);
        std::fill_n(overwritten.v.begin(), num, kNan);
        ASSERT_TRUE(SameBits(RunLast(config, data, num_new, 0),
                             RunLast(config, overwritten, num_new, begin)))
            << IsaName(isa) << " " << DTypeName(dtype) << ", window " << c.window << ", " << num_new
            << " new";
      }
    }
  }
}

TEST(AttentionExactness, OthersInTheBatchChangeNoBit) {
  constexpr int64_t kLengths[] = {1, 530, 16, 75};
  constexpr int64_t kNew[] = {1, 3, 16, 40};
  for (const auto& [isa, dtype] : AvailableKernels()) {
    const AttentionConfig config{6, 2, 32, dtype, 0, {.isa = IsaName(isa), .num_threads = 2}};
    auto attention = Attention::Create(config).value();
    auto cache = MakeTestCache(config, 16, 1024);
    std::vector<AttentionQuery> queries;
    std::vector<float> q, alone;
    const int64_t row_floats = config.num_heads * config.head_dim;
    for (int i = 0; i < 4; ++i) {
      const RandomSequence data(config, kLengths[i], static_cast<uint32_t>(i));
      const SequenceId sequence = cache->CreateSequence();
      AppendTokens(*cache, sequence, data, 0, kLengths[i]);
      queries.push_back({cache->View(sequence).value(), kNew[i]});
      q.insert(q.end(), data.q.end() - kNew[i] * row_floats, data.q.end());
      alone.resize(q.size());
      const int64_t first = static_cast<int64_t>(q.size()) - kNew[i] * row_floats;
      ASSERT_TRUE(attention->Run(kTestLayer, {&queries.back(), 1},
                                 DenseF32(q.data() + first, {kNew[i], 6, 32}),
                                 DenseF32(alone.data() + first, {kNew[i], 6, 32})));
    }
    std::vector<float> together(q.size());
    ASSERT_TRUE(attention->Run(kTestLayer, queries, DenseF32(q.data(), {60, 6, 32}),
                               DenseF32(together.data(), {60, 6, 32})));
    EXPECT_TRUE(SameBits(alone, together)) << IsaName(isa) << " " << DTypeName(dtype);
  }
}

// Fresh keys and values lie [token][head][dim] in two buffers; a view of them is only other
// strides.
TEST(AttentionExactness, StridesChangeNoBit) {
  for (const auto& [isa, dtype] : AvailableKernels()) {
    if (dtype != DType::kF32) continue;
    const AttentionConfig config{6, 2, 32, dtype, 0, {.isa = IsaName(isa), .num_threads = 2}};
    const RandomSequence data(config, 80, 9);
    const std::vector<float> wanted = RunCut(config, data, {});
    const BlockId block{0};
    KvView view;
    view.base = reinterpret_cast<const std::byte*>(data.k.data());
    view.blocks = &block;
    view.length = 80;
    view.layout = {
        1,     2,          32,     80,
        dtype, 2 * 32 * 4, 32 * 4, reinterpret_cast<const std::byte*>(data.v.data()) - view.base,
        0,     0};
    const AttentionQuery query{view, 80};
    std::vector<float> out(data.q.size());
    auto attention = Attention::Create(config).value();
    ASSERT_TRUE(attention->Run(0, {&query, 1}, DenseF32(data.q.data(), {80, 6, 32}),
                               DenseF32(out.data(), {80, 6, 32})));
    EXPECT_TRUE(SameBits(wanted, out)) << IsaName(isa);
  }
}

// Numbers far from 1, of every kind.
enum class Extremes {
  kSubnormal,  // products, weights and values below the least normal number
  kFinite,     // from subnormal to huge, and -0
  kInfinite,   // an infinity or a NaN now and then
};

float ExtremeNumber(Extremes extremes, float normal, std::mt19937& random) {
  const auto exponent = [&](int min, int max) {
    return min + static_cast<int>(random() % static_cast<uint32_t>(max - min + 1));
  };
  if (extremes == Extremes::kSubnormal) return std::ldexp(normal, exponent(-135, -120));
  const uint32_t chance = random() % 16384;
  if (extremes == Extremes::kInfinite && chance < 2) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    return chance == 0 ? std::copysign(kInfinity, normal) : kNan;
  }
  if (chance % 16 == 0) return std::copysign(0.0f, normal);
  if (chance % 16 == 1) return std::ldexp(normal, exponent(-148, -110));
  return std::ldexp(normal, chance % 16 == 2 ? exponent(4, 30) : exponent(-4, 1));
}

RandomSequence ExtremeSequence(const AttentionConfig& config, int64_t num_tokens,
                               Extremes extremes) {
  RandomSequence data(config, num_tokens, 17);
  std::mt19937 random(18);
  for (auto* numbers : {&data.k, &data.v, &data.q}) {
    if (extremes == Extremes::kSubnormal && numbers == &data.k) continue;
    for (float& number : *numbers) number = ExtremeNumber(extremes, number, random);
  }
  return data;
}

// A NaN is as good as another: its sign and payload depend on the order of operands.
std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (float x : numbers) bits.push_back(std::isnan(x) ? 0x7fc00000u : std::bit_cast<uint32_t>(x));
  return bits;
}

// The first isa of an order gives the bits that all others of that order must have.
using BitsOfOrder = std::map<NumericOrder, std::vector<uint32_t>>;

void ExpectBitsOfOrder(BitsOfOrder& bits_of_order, Isa isa, const AttentionConfig& config,
                       const std::vector<float>& out) {
  const NumericOrder order =
      UsesTiles(isa, config.dtype) ? NumericOrder::kTiles : NumericOrder::kCanonical;
  const auto [wanted, is_first] = bits_of_order.try_emplace(order, Bits(out));
  if (is_first) return;
  const std::vector<uint32_t> bits = Bits(out);
  const auto differ = std::mismatch(bits.begin(), bits.end(), wanted->second.begin());
  ASSERT_TRUE(differ.first == bits.end())
      << config.exec.isa << " " << DTypeName(config.dtype) << ", H " << config.num_heads << ", D "
      << config.head_dim << ": element " << differ.first - bits.begin() << " of " << bits.size()
      << ": expected bits " << std::hex << *differ.second << ", got " << *differ.first;
}

template <class AnyCase, class Run>
void ExpectSameBitsOnEveryIsa(const AnyCase& c, Run&& run) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    BitsOfOrder bits_of_order;
    for (const Isa isa : AvailableIsas()) {
      const AttentionConfig config = ConfigOf(c, isa, dtype);
      ExpectBitsOfOrder(bits_of_order, isa, config, run(config));
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
  }
}

TEST(AttentionExactness, EveryIsaOfAnOrderGivesTheSameBits) {
  for (int64_t head_dim = 2; head_dim <= 256; head_dim += head_dim < 72 ? 2 : 46) {
    ExpectSameBitsOnEveryIsa(Case{4, 2, head_dim, 40}, [](const AttentionConfig& config) {
      return RunCut(config, RandomSequence(config, 40, 7), {7, 33});
    });
    ASSERT_FALSE(HasFatalFailure()) << head_dim;
  }
  for (const Case& c : kCases) {
    ExpectSameBitsOnEveryIsa(c, [&](const AttentionConfig& config) {
      return RunCut(config, RandomSequence(config, c.num_tokens, 8), {c.num_tokens});
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  for (const WindowCase& c : kWindowCases) {
    ExpectSameBitsOnEveryIsa(c, [&](const AttentionConfig& config) {
      return RunCut(config, RandomSequence(config, c.shape.num_tokens, 8), {16, 128});
    });
    ASSERT_FALSE(HasFatalFailure()) << "window " << c.window;
  }
}

TEST(AttentionExactness, EveryIsaGivesTheSameBitsForExtremeNumbers) {
  for (const auto extremes : {Extremes::kSubnormal, Extremes::kFinite, Extremes::kInfinite}) {
    for (const Case& c : {Case{4, 2, 18, 40}, Case{5, 1, 64, 40}, Case{2, 1, 128, 530}}) {
      ExpectSameBitsOnEveryIsa(c, [&](const AttentionConfig& config) {
        return RunCut(config, ExtremeSequence(config, c.num_tokens, extremes), {16, 64});
      });
      ASSERT_FALSE(HasFatalFailure()) << static_cast<int>(extremes);
    }
  }
}

// Exact on every machine: no function of a library takes part.
std::vector<float> SmallFractions(size_t num, uint32_t seed) {
  std::vector<float> numbers;
  for (uint32_t state = seed; numbers.size() < num;) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<float>(static_cast<int32_t>(state) >> 8) / (1 << 21));
  }
  return numbers;
}

uint64_t Fnv1a(const std::vector<uint32_t>& words) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint32_t word : words) hash = (hash ^ word) * 0x100000001b3u;
  return hash;
}

// Recorded on another machine. A change of one of them is a new version of the numerics.
TEST(AttentionExactness, TheBitsAreThoseOfEveryMachine) {
  const std::map<DType, uint64_t> wanted = {{DType::kBF16, 4268287824886562529u},
                                            {DType::kF16, 97539918336790100u},
                                            {DType::kF32, 14630716769294382467u}};
  for (const auto& [isa, dtype] : AvailableKernels()) {
    if (UsesTiles(isa, dtype)) continue;
    const AttentionConfig config{2, 1, 80, dtype, 0, {.isa = IsaName(isa), .num_threads = 2}};
    RandomSequence data(config, 540, 0);
    data.k = SmallFractions(data.k.size(), 1);
    data.v = SmallFractions(data.v.size(), 2);
    data.q = SmallFractions(data.q.size(), 3);
    EXPECT_EQ(Fnv1a(Bits(RunCut(config, data, {16, 128}))), wanted.at(dtype))
        << IsaName(isa) << " " << DTypeName(dtype);
  }
}

// As inputs they count as zero; as results they become zero. The caller's own arithmetic goes on as
// before.
TEST(AttentionExactness, SubnormalsAreFlushedInsideOnly) {
  constexpr Case kSmall = {4, 2, 32, 40};
  for (const auto& [isa, dtype] : AvailableKernels()) {
    const AttentionConfig config{kSmall.num_heads,
                                 kSmall.num_kv_heads,
                                 kSmall.head_dim,
                                 dtype,
                                 0,
                                 {.isa = IsaName(isa), .num_threads = 2}};
    if (dtype == DType::kF16) continue;  // whose least number is a normal one in f32
    RandomSequence data(config, kSmall.num_tokens, 4);
    for (float& v : data.v) v = std::copysign(1e-39f, v);
    for (const float x : RunCut(config, data, {})) ASSERT_EQ(x, 0.0f) << IsaName(isa);
    volatile float subnormal = 1e-39f;
    subnormal = subnormal * 0.5f;
    EXPECT_GT(subnormal, 0.0f) << IsaName(isa);
  }
}

}  // namespace
}  // namespace kvick
