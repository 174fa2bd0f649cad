#include "model/forward_ref.h"

#include <algorithm>
#include <cmath>

#include "ops/matrix_view.h"

namespace kvick {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one a token

// y[t] = W x[t] + bias
Rows Project(const MatrixView& w, const std::vector<float>& bias, const Rows& x) {
  Rows y(x.size(), Row(w.num_rows));
  for (int64_t n = 0; n < w.num_rows; ++n) {
    const std::vector<float> row = WeightRow(w, n);
    for (size_t t = 0; t < x.size(); ++t) {
      double sum = bias.empty() ? 0 : bias[n];
      for (int64_t k = 0; k < w.num_cols; ++k) sum += row[k] * x[t][k];
      y[t][n] = sum;
    }
  }
  return y;
}

Rows Norm(const Rows& x, const std::vector<float>& weight, double epsilon) {
  Rows y = x;
  for (Row& row : y) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
    for (size_t i = 0; i < row.size(); ++i) row[i] *= scale * weight[i];
  }
  return y;
}

void Rotate(const LlamaConfig& config, Rows& x) {
  const std::vector<double> frequencies = RopeInverseFrequencies(config);
  const auto half = static_cast<int64_t>(frequencies.size());
  const bool is_halves = config.rope.pairs == RopePairs::kHalves;
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t head = 0; head < x[t].size(); head += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        double& a = x[t][head + (is_halves ? i : 2 * i)];
        double& b = x[t][head + (is_halves ? i + half : 2 * i + 1)];
        const double angle = static_cast<double>(t) * frequencies[i];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = rotated;
      }
    }
  }
}

// Token t attends to tokens 0 .. t.
Rows Attend(const LlamaConfig& config, const Rows& q, const Rows& k, const Rows& v) {
  const int64_t dim = config.head_dim, group = config.num_heads / config.num_kv_heads;
  Rows out(q.size(), Row(config.num_heads * dim));
  for (size_t t = 0; t < q.size(); ++t) {
    for (int64_t head = 0; head < config.num_heads; ++head) {
      const int64_t at = head * dim, kv_at = head / group * dim;
      Row weights(t + 1);
      for (size_t s = 0; s <= t; ++s) {
        for (int64_t d = 0; d < dim; ++d) weights[s] += q[t][at + d] * k[s][kv_at + d];
        weights[s] /= std::sqrt(static_cast<double>(dim));
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - max);
      for (size_t s = 0; s <= t; ++s) {
        for (int64_t d = 0; d < dim; ++d) out[t][at + d] += weights[s] / sum * v[s][kv_at + d];
      }
    }
  }
  return out;
}

void Add(Rows& x, const Rows& y) {
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
  }
}

void RunLayer(const LlamaConfig& config, const LayerWeights& w, Rows& x) {
  const Rows normed = Norm(x, w.attention_norm, config.rms_norm_eps);
  Rows q = Project(w.q, w.q_bias, normed), k = Project(w.k, w.k_bias, normed);
  Rotate(config, q);
  Rotate(config, k);
  const Rows attended = Attend(config, q, k, Project(w.v, w.v_bias, normed));
  Add(x, Project(w.o, w.o_bias, attended));

  const Rows ffn_normed = Norm(x, w.ffn_norm, config.rms_norm_eps);
  Rows gate = Project(w.gate, w.gate_bias, ffn_normed);
  const Rows up = Project(w.up, w.up_bias, ffn_normed);
  for (size_t t = 0; t < gate.size(); ++t) {
    for (size_t i = 0; i < gate[t].size(); ++i) {
      gate[t][i] = gate[t][i] / (1 + std::exp(-gate[t][i])) * up[t][i];
    }
  }
  Add(x, Project(w.down, w.down_bias, gate));
}

}  // namespace

std::vector<double> ForwardRef(const ModelFile& file, std::span<const int32_t> tokens) {
  const ModelWeights& weights = file.weights();
  Rows x;
  for (const int32_t token : tokens) {
    const std::vector<float> row = WeightRow(weights.embedding, token);
    x.emplace_back(row.begin(), row.end());
  }
  for (const LayerWeights& layer : weights.layers) RunLayer(file.config(), layer, x);
  x = Norm(x, weights.final_norm, file.config().rms_norm_eps);
  std::vector<double> logits;
  for (const Row& row : Project(weights.output, {}, x)) {
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace kvick
