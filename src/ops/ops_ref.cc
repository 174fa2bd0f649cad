#include "ops/ops_ref.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "ops/matrix_view.h"

namespace kvick {

void LinearRef(const LinearArgs& args, double* y, double* magnitude) {
  const int64_t num_rows = args.w.num_rows, num_cols = args.w.num_cols;
  for (int64_t n = 0; n < num_rows; ++n) {
    const std::vector<float> w = WeightRow(args.w, n);
    const double bias = args.bias == nullptr ? 0.0 : args.bias[n];
    for (int64_t t = 0; t < args.num_tokens; ++t) {
      double sum = 0, sum_of_magnitudes = 0;
      for (int64_t k = 0; k < num_cols; ++k) {
        const double product = static_cast<double>(w[k]) * args.x[t * num_cols + k];
        sum += product;
        sum_of_magnitudes += std::fabs(product);
      }
      y[t * num_rows + n] = sum + bias;
      magnitude[t * num_rows + n] = sum_of_magnitudes + std::fabs(bias);
    }
  }
}

void RmsNormRef(const RmsNormArgs& args, double* out) {
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    const float* x = args.x + t * args.num_cols;
    double squares = 0;
    for (int64_t i = 0; i < args.num_cols; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double mean = squares / static_cast<double>(args.num_cols);
    const double root = std::sqrt(mean + args.epsilon);
    for (int64_t i = 0; i < args.num_cols; ++i)
      out[t * args.num_cols + i] = x[i] / root * args.weight[i];
  }
}

void RopeRef(const RopeArgs& args, std::span<const double> angles, double* out) {
  const int64_t half = args.num_rotated / 2;
  const bool halves = args.pairs == RopePairs::kHalves;
  KVICK_CHECK(static_cast<int64_t>(angles.size()) == args.num_tokens * half);
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    for (int64_t h = 0; h < args.num_heads; ++h) {
      const int64_t head = (t * args.num_heads + h) * args.head_dim;
      for (int64_t i = 2 * half; i < args.head_dim; ++i) out[head + i] = args.x[head + i];
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = head + (halves ? i : 2 * i);
        const int64_t second = head + (halves ? i + half : 2 * i + 1);
        const double a = args.x[first], b = args.x[second], angle = angles[t * half + i];
        out[first] = a * std::cos(angle) - b * std::sin(angle);
        out[second] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
}

double ActivationRef(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1.0 + std::exp(-x));
  const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));  // 1 + tanh(u) would cancel
}

}  // namespace kvick
