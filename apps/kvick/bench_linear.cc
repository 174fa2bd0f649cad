// kvick bench linear: tokens times a weight matrix, another matrix at each pass.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/random_numbers.h"
#include "bench_data.h"
#include "bench_rows.h"
#include "help.h"
#include "ops/linear.h"
#include "ops/ops_ref.h"
#include "options.h"
#include "quant/random_weights.h"

namespace kvick::cli {
namespace {

constexpr int64_t kAlignment = 64;

struct LinearOptions : BenchOptions {
  std::vector<int64_t> tokens = {1, 4, 16, 512};
  std::string type = "bf16";
  int64_t num_rows = 14336;
  int64_t num_cols = 4096;
};

// Matrices one behind the other, in all larger than the caches, and what they are multiplied with.
class LinearBench {
 public:
  static Result<std::unique_ptr<LinearBench>> Create(const LinearOptions& options,
                                                     const BenchSetup& setup);

  // Holds outputs to the reference: those of the first, the middle and the last rows of a matrix.
  Status Check(int64_t num_tokens);
  void Run(const MatrixView& w, int64_t num_tokens);
  Contender Timed(int64_t num_tokens);

  BenchWork Work(int64_t num_tokens) const;

 private:
  LinearBench() = default;
  MatrixView matrix(int64_t index) const;
  const float* x() const { return reinterpret_cast<const float*>(x_.data()); }
  float* y() const { return reinterpret_cast<float*>(y_.data()); }
  Status Allocate(int64_t max_tokens);
  void Fill(int64_t max_tokens);

  Exec exec_;
  WeightType type_ = WeightType::kF32;
  int64_t num_rows_ = 0, num_cols_ = 0;
  int64_t num_matrices_ = 0;
  int64_t matrix_bytes_ = 0;
  int64_t matrix_stride_ = 0;  // bytes from a matrix to the next
  MappedRegion weights_;
  MappedRegion x_, y_;  // f32 [T, cols], [T, rows]
  MappedRegion scratch_;
  int64_t scratch_bytes_ = 0;
  int64_t next_matrix_ = 0;
};

Result<std::unique_ptr<LinearBench>> LinearBench::Create(const LinearOptions& options,
                                                         const BenchSetup& setup) {
  std::unique_ptr<LinearBench> bench(new LinearBench());
  bench->exec_ = setup.exec;
  bench->type_ = ParseWeightType(options.type);
  bench->num_rows_ = options.num_rows;
  bench->num_cols_ = options.num_cols;
  const auto row_bytes = WeightBytes(bench->type_, options.num_cols);
  if (!row_bytes) {
    return Fail(ErrorCode::kInvalidArgument, "--cols: expected a multiple of {} for {}, got {}",
                FormatOf(bench->type_).block_elements, options.type, options.num_cols);
  }
  bench->matrix_bytes_ = options.num_rows * *row_bytes;
  bench->matrix_stride_ = RoundUp(bench->matrix_bytes_, kAlignment);
  bench->num_matrices_ = CeilDiv(setup.working_set_bytes, bench->matrix_bytes_);
  const int64_t max_tokens = *std::max_element(options.tokens.begin(), options.tokens.end());
  KVICK_RETURN_IF_ERROR(bench->Allocate(max_tokens));
  bench->Fill(max_tokens);
  return bench;
}

Status LinearBench::Allocate(int64_t max_tokens) {
  scratch_bytes_ = LinearScratchBytes(exec_, type_, max_tokens, num_cols_);
  constexpr int64_t kFloatBytes = sizeof(float);
  const std::pair<MappedRegion*, int64_t> regions[] = {
      {&weights_, num_matrices_ * matrix_stride_},
      {&x_, max_tokens * num_cols_ * kFloatBytes},
      {&y_, max_tokens * num_rows_ * kFloatBytes},
      {&scratch_, std::max<int64_t>(1, scratch_bytes_)}};
  for (const auto& [region, num_bytes] : regions) {
    KVICK_ASSIGN_OR_RETURN(*region, MappedRegion::Create(num_bytes, Backing::kUpFront));
  }
  return {};
}

void LinearBench::Fill(int64_t max_tokens) {
  RandomWeights numbers{type_, num_rows_ * num_cols_, 1 / std::sqrt(static_cast<double>(num_cols_)),
                        0, exec_.num_threads};
  for (int64_t i = 0; i < num_matrices_; ++i) {
    numbers.seed = static_cast<uint32_t>(i);
    numbers.WriteTo(weights_.data() + i * matrix_stride_);
  }
  RandomNumbers{DType::kF32, max_tokens * num_cols_}.WriteTo(x_.data());
}

MatrixView LinearBench::matrix(int64_t index) const {
  return {weights_.data() + index * matrix_stride_, type_, num_rows_, num_cols_};
}

void LinearBench::Run(const MatrixView& w, int64_t num_tokens) {
  Linear(exec_, {w, nullptr, x(), num_tokens, y()},
         {scratch_.data(), static_cast<size_t>(scratch_bytes_)});
}

// The worst that rounding could do would hide whole faults: numbers are random, so are the errors,
// and independent ones add up as their squares do. The K roundings of a growing sum come to about
// 2^-24 of sum_k |w x|, in whatever order, and on matrix tiles those of the activations to
// 2^-8 / sqrt(K) of it. Ten times that is never reached by chance.
Status LinearBench::Check(int64_t num_tokens) {
  const MatrixView w = matrix(0);
  Run(w, num_tokens);
  const int64_t num_checked = std::min<int64_t>(32, num_rows_);
  const double x_error = type_ == WeightType::kBF16       ? 0x1p-8
                         : FormatOf(type_).is_quantized() ? 0x1p-13
                                                          : 0.0;
  const double bound = 10 * (0x1p-24 + x_error / std::sqrt(static_cast<double>(num_cols_)));
  std::vector<double> expected(static_cast<size_t>(num_tokens * num_checked)), magnitude = expected;
  for (const int64_t first : {int64_t{0}, (num_rows_ - num_checked) / 2, num_rows_ - num_checked}) {
    MatrixView rows = w;
    rows.data += first * RowBytes(w);
    rows.num_rows = num_checked;
    LinearRef({rows, nullptr, x(), num_tokens}, expected.data(), magnitude.data());
    for (int64_t i = 0; i < num_tokens * num_checked; ++i) {
      const int64_t token = i / num_checked, row = first + i % num_checked;
      const float got = y()[token * num_rows_ + row];
      const double wanted = expected[static_cast<size_t>(i)];
      if (std::abs(got - wanted) <= bound * magnitude[static_cast<size_t>(i)]) continue;
      return Fail(ErrorCode::kInternal,
                  "bench: linear of {} tokens gives {} for token {}, row {}, the reference {}",
                  num_tokens, got, token, row, wanted);
    }
  }
  return {};
}

Contender LinearBench::Timed(int64_t num_tokens) {
  return {[this, num_tokens] {
            Run(matrix(next_matrix_), num_tokens);
            next_matrix_ = (next_matrix_ + 1) % num_matrices_;
            return Status();
          },
          nullptr};
}

// The matrix, read once.
BenchWork LinearBench::Work(int64_t num_tokens) const {
  const double num_weights = static_cast<double>(num_rows_) * static_cast<double>(num_cols_);
  return {static_cast<double>(matrix_bytes_),
          {{WeightMultiplication(exec_.isa, type_),
            WeightFlops(exec_.isa, type_) * static_cast<double>(num_tokens) * num_weights}}};
}

// Passes that differ much in length are timed apart: slices are as long as the longest asks for.
Outcome RunLinear(const LinearOptions& options) {
  constexpr int64_t kFewTokens = 16;
  BenchReport report;
  KVICK_ASSIGN_OR_RETURN(report.setup, BenchSetup::From(options));
  KVICK_ASSIGN_OR_RETURN(const auto bench, LinearBench::Create(options, report.setup));
  KVICK_ASSIGN_OR_RETURN(auto buffer, MakeReadBuffer(report.setup));
  const BenchLimit read = ReadBenchLimit(std::move(buffer), report.setup.exec);
  const auto time = [&](std::span<const int64_t> token_counts) -> Status {
    std::vector<BenchCase> cases;
    for (const int64_t num_tokens : token_counts) {
      KVICK_RETURN_IF_ERROR(bench->Check(num_tokens));
      cases.push_back({fmt::format("linear {}", options.type), Counted(num_tokens, "token"),
                       bench->Work(num_tokens), bench->Timed(num_tokens)});
    }
    return cases.empty() ? Status() : report.Time(read, std::move(cases));
  };
  std::vector<int64_t> tokens = options.tokens;
  const auto many = std::stable_partition(
      tokens.begin(), tokens.end(), [](int64_t num_tokens) { return num_tokens <= kFewTokens; });
  KVICK_RETURN_IF_ERROR(time({tokens.begin(), many}));
  for (auto it = many; it != tokens.end(); ++it) KVICK_RETURN_IF_ERROR(time({&*it, 1}));
  return report.Finish(options);
}

}  // namespace

Verb AddBenchLinear(CLI::App& app) {
  auto options = std::make_shared<LinearOptions>();
  AddExample(app, "kvick bench linear --tokens 1,16 --type q8_0");
  app.add_option("--tokens", options->tokens, "numbers of tokens, a row each")
      ->delimiter(',')
      ->transform(IntFrom(1, 1 << 16))
      ->capture_default_str();
  AddWeightTypeOption(app, options->type);
  app.add_option("--rows", options->num_rows, "outputs of the matrix")
      ->transform(IntFrom(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--cols", options->num_cols, "inputs of the matrix")
      ->transform(IntFrom(1, 1 << 20))
      ->capture_default_str();
  options->AddTo(app);
  return [options] { return RunLinear(*options); };
}

}  // namespace kvick::cli
