#include "ops/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "ops/ops_ref.h"
#include "ops/ops_test_util.h"

namespace kvick {
namespace {

std::vector<WeightType> AllTypes() {
  std::vector<WeightType> types;
  for (const WeightFormat& format : AllWeightFormats()) types.push_back(format.type);
  return types;
}

const std::vector<WeightType> kTypes = AllTypes();

// Random weights of any type in memory of exactly their size, `offset_bytes` off alignment.
class Weights {
 public:
  Weights(WeightType type, int64_t num_rows, int64_t num_cols, int64_t offset_bytes = 0)
      : offset_bytes_(offset_bytes), view_{nullptr, type, num_rows, num_cols} {
    const int64_t n = num_rows * num_cols;
    const std::vector<float> values = RandomFloats(n, 7);
    bytes_.resize(static_cast<size_t>(offset_bytes + WeightBytes(type, n).value()));
    std::vector<std::byte> aligned(bytes_.size());
    EncodeWeights(type, values.data(), n, aligned.data());
    std::copy_n(aligned.begin(), bytes_.size() - static_cast<size_t>(offset_bytes),
                bytes_.begin() + offset_bytes);
  }

  MatrixView view() const {
    MatrixView view = view_;
    view.data = bytes_.data() + offset_bytes_;
    return view;
  }

 private:
  int64_t offset_bytes_;
  MatrixView view_;
  std::vector<std::byte> bytes_;
};

struct Problem {
  MatrixView w;
  const float* bias = nullptr;
  Activations activations = Activations::kRounded;
};

constexpr Activations kBothActivations[] = {Activations::kRounded, Activations::kSplit};

std::vector<float> RunLinear(const Exec& exec, const Problem& problem, const float* x,
                             int64_t num_tokens) {
  const MatrixView& w = problem.w;
  std::vector<float> y(static_cast<size_t>(num_tokens * w.num_rows),
                       std::numeric_limits<float>::quiet_NaN());
  const int64_t scratch_bytes = LinearScratchBytes(exec, w.type, num_tokens, w.num_cols);
  std::vector<std::byte> memory(static_cast<size_t>(scratch_bytes + 64), std::byte{0xff});
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()) % 64);
  Linear(exec, {w, problem.bias, x, num_tokens, y.data(), problem.activations},
         {memory.data() + (64 - misaligned) % 64, static_cast<size_t>(scratch_bytes)});
  return y;
}

// The longest chain of roundings that a product passes through, in units of the relative error of
// one f32 rounding.
double NumRoundings(Isa isa, const Problem& problem) {
  const int64_t num_cols = problem.w.num_cols;
  const WeightType type = problem.w.type;
  const int64_t num_terms =
      type == WeightType::kBF16 && problem.activations == Activations::kSplit ? 2 : 1;
  if (UsesTiles(isa, type)) {
    return 16 + 1 +
           static_cast<double>(num_terms * CeilDiv(num_cols, 32));  // in a tile; even + odd
  }
  const WeightFormat& format = FormatOf(type);
  int64_t chain = CeilDiv(num_cols, 16);
  if (type == WeightType::kBF16) chain = 2 * num_terms * CeilDiv(num_cols, 32);
  if (format.is_quantized()) {  // 4: of the integer sum, of the scales
    const int64_t num_subs = num_cols / format.sub_block_elements;
    chain = 4 + (format.has_minimums ? 2 : 1) * CeilDiv(num_subs, 16);
  }
  return static_cast<double>(chain) + 4;  // 4: the tree
}

std::string Describe(Isa isa, const MatrixView& w, int64_t num_tokens) {
  return std::string(IsaName(isa)) + ", w " + std::string(FormatOf(w.type).name) + " [" +
         std::to_string(w.num_rows) + ", " + std::to_string(w.num_cols) + "], " +
         std::to_string(num_tokens) + " tokens";
}

// How far an output may be from its reference, for each. `magnitude` is that of LinearRef.
std::vector<double> Bounds(Isa isa, const Problem& problem, const std::vector<double>& magnitude) {
  double x_rounding = 0;
  if (problem.w.type == WeightType::kBF16) {
    const bool is_split = problem.activations == Activations::kSplit;
    x_rounding = is_split ? kBF16HalfUlp * kBF16HalfUlp : kBF16HalfUlp;
  }
  // + 1 for the bias; 1.01 pays for second-order terms.
  const double relative = 1.01 * ((NumRoundings(isa, problem) + 1) * kF32HalfUlp + x_rounding);
  std::vector<double> bounds;
  for (double of_output : magnitude) bounds.push_back(relative * of_output);
  return bounds;
}

// The same for quantized weights. An activation is off by half a unit of its block's scale; a
// product with a code and one with a minimum are rounded apart, before one may cancel the other.
std::vector<double> QuantizedBounds(const Problem& problem, const float* x, int64_t num_tokens) {
  const MatrixView& w = problem.w;
  const WeightFormat& format = FormatOf(w.type);
  const double relative = 1.01 * (NumRoundings(Isa::kScalar, problem) + 1) * kF32HalfUlp;
  std::vector<double> bounds(static_cast<size_t>(num_tokens * w.num_rows));
  std::vector<double> units;  // of each block of each token
  for (int64_t block = 0; block < num_tokens * w.num_cols / 32; ++block) {
    double amax = 0;
    for (int64_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(double{x[block * 32 + i]}));
    units.push_back(amax / 32639);
  }
  for (int64_t row = 0; row < w.num_rows; ++row) {
    std::vector<double> weights, magnitudes;
    for (int64_t block = 0; block < w.num_cols / format.block_elements; ++block) {
      UnpackedBlock unpacked;
      format.unpack(w.data + row * RowBytes(w) + block * format.block_bytes, unpacked);
      for (int64_t i = 0; i < format.block_elements; ++i) {
        const double product =
            double{unpacked.scales[i / format.sub_block_elements]} * unpacked.codes[i];
        const double minimum = unpacked.minimums[i / format.sub_block_elements];
        weights.push_back(product + minimum);
        magnitudes.push_back(std::fabs(product) + std::fabs(minimum));
      }
    }
    for (int64_t t = 0; t < num_tokens; ++t) {
      double& bound = bounds[static_cast<size_t>(t * w.num_rows + row)];
      bound = problem.bias == nullptr ? 0 : relative * std::fabs(problem.bias[row]);
      for (int64_t i = 0; i < w.num_cols; ++i) {
        const int64_t at = t * w.num_cols + i;
        const double unit = units[static_cast<size_t>(at / 32)];
        bound += 0.505 * unit * std::fabs(weights[static_cast<size_t>(i)]);
        bound += relative * magnitudes[static_cast<size_t>(i)] * (std::fabs(x[at]) + unit);
      }
    }
  }
  return bounds;
}

// On every implementation.
void ExpectNearReference(const Problem& problem, int64_t num_tokens) {
  const MatrixView& w = problem.w;
  const std::vector<float> x = RandomFloats(num_tokens * w.num_cols, 8);
  std::vector<double> expected(static_cast<size_t>(num_tokens * w.num_rows));
  std::vector<double> magnitude(expected.size());
  LinearRef({w, problem.bias, x.data(), num_tokens, nullptr}, expected.data(), magnitude.data());
  const bool is_quantized = FormatOf(w.type).is_quantized();
  const std::vector<double> quantized_bounds =
      is_quantized ? QuantizedBounds(problem, x.data(), num_tokens) : std::vector<double>();
  for (Isa isa : AvailableIsas()) {
    const std::vector<float> y = RunLinear({isa, 2}, problem, x.data(), num_tokens);
    const std::vector<double> bounds =
        is_quantized ? quantized_bounds : Bounds(isa, problem, magnitude);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], expected[i], bounds[i]) << Describe(isa, w, num_tokens) << ", output " << i;
    }
  }
}

constexpr int64_t kNumCols[] = {1, 8, 31, 32, 33, 64, 172, 256, 768, 4096};
constexpr int64_t kNumRows[] = {1, 15, 16, 17, 512};

bool Exists(WeightType type, int64_t num_cols) { return WeightBytes(type, num_cols).has_value(); }

TEST(Linear, IsNearTheReference) {
  for (WeightType type : kTypes) {
    for (int64_t num_cols : kNumCols) {
      if (!Exists(type, num_cols)) continue;
      for (int64_t num_rows : {1, 17, 70}) {
        const Weights weights(type, num_rows, num_cols);
        const std::vector<float> bias = RandomFloats(num_rows, 9);
        for (int64_t num_tokens : {1, 3, 37}) {
          ExpectNearReference({weights.view()}, num_tokens);
          ExpectNearReference({weights.view(), bias.data()}, num_tokens);
          if (type != WeightType::kBF16) continue;
          ExpectNearReference({weights.view(), bias.data(), Activations::kSplit}, num_tokens);
        }
      }
    }
  }
}

// Numbers of all magnitudes, with zeros of both signs, subnormals and, in the last tokens,
// infinities and NaN.
std::vector<float> HardFloats(int64_t num_tokens, int64_t num_cols) {
  std::vector<float> x = RandomFloats(num_tokens * num_cols, 8);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::ldexp(x[i], static_cast<int>(i * 2654435761u >> 24 & 0xff) - 150);
    if (i % 11 == 0) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  x[x.size() - 1] = std::numeric_limits<float>::infinity();
  x[x.size() - 1 - static_cast<size_t>(num_cols)] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

bool SameBitsButNans(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return SameBits(&x, &y, 1) || (std::isnan(x) && std::isnan(y));
  });
}

// An implementation is only a speed.
TEST(Linear, AllImplementationsOfAnOrderHaveTheSameBits) {
  for (WeightType type : kTypes) {
    for (int64_t num_cols : kNumCols) {
      if (!Exists(type, num_cols)) continue;
      const Weights weights(type, 37, num_cols);
      const std::vector<float> bias = RandomFloats(37, 9);
      for (int64_t num_tokens : {2, 9}) {
        const std::vector<float> x = HardFloats(num_tokens, num_cols);
        for (Activations activations : kBothActivations) {
          const Problem problem{weights.view(), bias.data(), activations};
          std::map<bool, std::vector<float>> expected;
          for (Isa isa : AvailableIsas()) {
            const std::vector<float> y = RunLinear({isa, 1}, problem, x.data(), num_tokens);
            const auto first = expected.try_emplace(UsesTiles(isa, type), y).first;
            ASSERT_TRUE(SameBitsButNans(y, first->second))
                << Describe(isa, weights.view(), num_tokens);
          }
        }
      }
    }
  }
}

// T = 1 for each row is what T = n gives, on any number of threads and at any alignment.
void ExpectSameBitsHoweverCut(Isa isa, const Weights& weights, const Weights& unaligned,
                              Activations activations) {
  const int64_t max_tokens = 100;
  const int64_t num_rows = weights.view().num_rows, num_cols = weights.view().num_cols;
  const std::vector<float> bias = RandomFloats(num_rows, 9);
  const std::vector<float> x = RandomFloats(max_tokens * num_cols, 8);
  const Problem problem{weights.view(), bias.data(), activations};
  std::vector<float> expected;
  for (int64_t t = 0; t < max_tokens; ++t) {
    const std::vector<float> y = RunLinear({isa, 1}, problem, x.data() + t * num_cols, 1);
    expected.insert(expected.end(), y.begin(), y.end());
  }
  for (int64_t num_tokens : {2, 3, 5, 17, 64, 100}) {
    for (int num_threads : {1, 2, 3}) {
      const std::vector<float> y = RunLinear({isa, num_threads}, problem, x.data(), num_tokens);
      ASSERT_TRUE(SameBits(y.data(), expected.data(), static_cast<int64_t>(y.size())))
          << Describe(isa, weights.view(), num_tokens) << ", " << num_threads << " threads";
    }
  }
  const Problem off{unaligned.view(), bias.data(), activations};
  const std::vector<float> y = RunLinear({isa, 2}, off, x.data(), 5);
  ASSERT_TRUE(SameBits(y.data(), expected.data(), static_cast<int64_t>(y.size())))
      << Describe(isa, weights.view(), 5) << ", unaligned";
}

class LinearExactness : public testing::TestWithParam<Isa> {};

TEST_P(LinearExactness, BitsDependOnTheTokenAndTheRowAlone) {
  if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
  for (WeightType type : kTypes) {
    for (int64_t num_cols : kNumCols) {
      if (!Exists(type, num_cols)) continue;
      for (int64_t num_rows : kNumRows) {
        if (num_cols > 256 && num_rows > 17) continue;  // a minute, and nothing new
        const Weights weights(type, num_rows, num_cols), unaligned(type, num_rows, num_cols, 1);
        for (Activations activations : kBothActivations) {
          if (activations == Activations::kSplit && type != WeightType::kBF16) continue;
          ExpectSameBitsHoweverCut(GetParam(), weights, unaligned, activations);
        }
      }
    }
  }
}

// Enough weights for several tasks, so that threads do share them.
TEST_P(LinearExactness, ManyTasksHaveTheBitsOfOne) {
  if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
  const Weights weights(WeightType::kBF16, 200, 4096);
  const std::vector<float> x = RandomFloats(33 * 4096, 8);
  const std::vector<float> one = RunLinear({GetParam(), 1}, {weights.view()}, x.data(), 33);
  for (int num_threads : {2, 3}) {
    const std::vector<float> y =
        RunLinear({GetParam(), num_threads}, {weights.view()}, x.data(), 33);
    EXPECT_TRUE(SameBits(y.data(), one.data(), static_cast<int64_t>(y.size())));
  }
}

// More columns, and more tokens, than tiles take at once, and a rest of each.
TEST_P(LinearExactness, BlocksOfColumnsAndTokensHaveTheBitsOfOneToken) {
  if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
  constexpr int64_t kTokens = 555, kRows = 41, kCols = 1100;
  const Weights weights(WeightType::kBF16, kRows, kCols);
  const std::vector<float> x = RandomFloats(kTokens * kCols, 8);
  const Problem problem{weights.view(), nullptr, Activations::kSplit};
  const std::vector<float> together = RunLinear({GetParam(), 2}, problem, x.data(), kTokens);
  for (int64_t t = 0; t < kTokens; ++t) {
    const std::vector<float> alone = RunLinear({GetParam(), 1}, problem, x.data() + t * kCols, 1);
    ASSERT_TRUE(SameBits(alone.data(), together.data() + t * kRows, kRows)) << "token " << t;
  }
}

// A token of infinities and NaN beside an ordinary one, weights that end where the memory ends.
TEST_P(LinearExactness, NeighboursDoNotLeakIntoAToken) {
  if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this machine cannot run it";
  for (WeightType type : kTypes) {
    for (int64_t num_cols : {33, 64}) {
      if (!Exists(type, num_cols)) continue;
      const Weights weights(type, 17, num_cols);
      std::vector<float> x = RandomFloats(3 * num_cols, 8);
      const std::vector<float> alone =
          RunLinear({GetParam(), 1}, {weights.view()}, x.data() + num_cols, 1);
      std::fill_n(x.begin(), num_cols, std::numeric_limits<float>::infinity());
      std::fill_n(x.begin() + 2 * num_cols, num_cols, std::numeric_limits<float>::quiet_NaN());
      const std::vector<float> y = RunLinear({GetParam(), 1}, {weights.view()}, x.data(), 3);
      EXPECT_TRUE(SameBits(y.data() + 17, alone.data(), 17));
      EXPECT_TRUE(std::isnan(y[2 * 17]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LinearExactness, testing::ValuesIn(AllIsas().begin(), AllIsas().end()),
                         [](const auto& test) {
                           std::string name(IsaName(test.param));
                           std::erase(name, '-');
                           return name;
                         });

// Every f16 and bf16 value, infinities too, through a row of one column. The subnormals of f16 are
// normal numbers in f32; those of bf16 are flushed.
TEST(Linear, TurnsWeightsToF32Exactly) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> bits(0x10000);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    const MatrixView w{reinterpret_cast<const std::byte*>(bits.data()), WeightTypeOf(dtype),
                       0x10000, 1};
    std::vector<float> expected(bits.size());
    ConvertToF32(dtype, bits.data(), 0x10000, expected.data());
    for (float& value : expected) {
      if (std::fpclassify(value) == FP_SUBNORMAL) value = 0;
    }
    for (Isa isa : AvailableIsas()) {
      if (UsesTiles(isa, dtype)) continue;
      const float one = 1;
      const std::vector<float> y = RunLinear({isa, 1}, {w}, &one, 1);
      for (size_t i = 0; i < y.size(); ++i) {
        if (std::isnan(expected[i]) && std::isnan(y[i])) continue;
        ASSERT_EQ(y[i], expected[i]) << IsaName(isa) << ", bits " << i;
      }
    }
  }
}

TEST(Linear, NoTokensIsNoWork) {
  const Weights weights(WeightType::kBF16, 4, 8);
  for (Isa isa : AvailableIsas())
    EXPECT_TRUE(RunLinear({isa, 1}, {weights.view()}, nullptr, 0).empty());
}

TEST(LinearDeathTest, ScratchThatIsTooSmallIsRefused) {
  const Weights weights(WeightType::kBF16, 4, 8);
  std::vector<float> x(8), y(4);
  EXPECT_DEATH(Linear({Isa::kScalar, 1}, {weights.view(), nullptr, x.data(), 1, y.data()}, {}),
               "check failed");
}

}  // namespace
}  // namespace kvick
