#include "model/forward_ref.h"

#include <algorithm>
#include <cmath>

#include "ops/matrix_view.h"
#include "ops/ops_ref.h"

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

// The first R elements of each head, where x has heads of head_dim.
void Rotate(const RopeSpec& rope, int64_t head_dim, Rows& x) {
  const std::vector<double> frequencies =
      RopeInverseFrequencies(rope, static_cast<int64_t>(x.size()));
  const auto half = static_cast<int64_t>(frequencies.size());
  const bool is_halves = rope.pairs == RopePairs::kHalves;
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t head = 0; head < x[t].size(); head += static_cast<size_t>(head_dim)) {
      for (int64_t i = 0; i < half; ++i) {
        double& a = x[t][head + (is_halves ? i : 2 * i)];
        double& b = x[t][head + (is_halves ? i + half : 2 * i + 1)];
        const double angle = static_cast<double>(t) * frequencies[i];
        const double cos = rope.magnitude * std::cos(angle), sin = rope.magnitude * std::sin(angle);
        const double rotated = a * cos - b * sin;
        b = b * cos + a * sin;
        a = rotated;
      }
    }
  }
}

// Normalizes each run of weight.size() elements; no weight leaves x as it is.
void NormRuns(const std::vector<float>& weight, double epsilon, Rows& x) {
  if (weight.empty()) return;
  for (Row& row : x) {
    for (size_t begin = 0; begin < row.size(); begin += weight.size()) {
      const auto first = row.begin() + static_cast<int64_t>(begin);
      const Rows normed =
          Norm({Row(first, first + static_cast<int64_t>(weight.size()))}, weight, epsilon);
      std::copy(normed[0].begin(), normed[0].end(), first);
    }
  }
}

// Token t attends to tokens 0 .. t, or to the last `window` of them.
Rows Attend(const ModelSpec& spec, const LayerSpec& layer, const Rows& q, const Rows& k,
            const Rows& v) {
  const int64_t dim = spec.head_dim, group = spec.num_heads / spec.num_kv_heads;
  const double scale =
      spec.attention_scale != 0 ? spec.attention_scale : 1 / std::sqrt(static_cast<double>(dim));
  const double cap = spec.score_soft_cap;
  Rows out(q.size(), Row(spec.num_heads * dim));
  for (size_t t = 0; t < q.size(); ++t) {
    const auto window = static_cast<size_t>(layer.window);
    const size_t begin = window > 0 && t + 1 > window ? t + 1 - window : 0;
    for (int64_t head = 0; head < spec.num_heads; ++head) {
      const int64_t at = head * dim, kv_at = head / group * dim;
      Row weights;
      for (size_t s = begin; s <= t; ++s) {
        double score = 0;
        for (int64_t d = 0; d < dim; ++d) score += q[t][at + d] * k[s][kv_at + d];
        score *= scale;
        weights.push_back(cap == 0 ? score : cap * std::tanh(score / cap));
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - max);
      for (size_t s = begin; s <= t; ++s) {
        const double weight = weights[s - begin] / sum;
        for (int64_t d = 0; d < dim; ++d) out[t][at + d] += weight * v[s][kv_at + d];
      }
    }
  }
  return out;
}

void AddBranch(double scale, const Rows& y, Rows& x) {
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += scale * y[t][i];
  }
}

Rows AttentionBranch(const ModelSpec& spec, const LayerSpec& layer, const LayerWeights& w, Rows x) {
  NormRuns(w.attention_norm, spec.rms_norm_eps, x);
  Rows q = Project(w.q, w.q_bias, x), k = Project(w.k, w.k_bias, x);
  NormRuns(w.q_norm, spec.rms_norm_eps, q);
  NormRuns(w.k_norm, spec.rms_norm_eps, k);
  if (layer.rope != LayerSpec::kNoRope) {
    Rotate(spec.ropes[static_cast<size_t>(layer.rope)], spec.head_dim, q);
    Rotate(spec.ropes[static_cast<size_t>(layer.rope)], spec.head_dim, k);
  }
  Rows y = Project(w.o, w.o_bias, Attend(spec, layer, q, k, Project(w.v, w.v_bias, x)));
  NormRuns(w.attention_post_norm, spec.rms_norm_eps, y);
  return y;
}

Rows FeedForwardBranch(const ModelSpec& spec, const LayerSpec& layer, const LayerWeights& w,
                       Rows x) {
  NormRuns(w.ffn_norm, spec.rms_norm_eps, x);
  Rows gate = Project(w.gate, w.gate_bias, x);
  const Rows up = Project(w.up, w.up_bias, x);
  for (size_t t = 0; t < gate.size(); ++t) {
    for (size_t i = 0; i < gate[t].size(); ++i) {
      gate[t][i] = ActivationRef(layer.activation, gate[t][i]) * up[t][i];
    }
  }
  Rows y = Project(w.down, w.down_bias, gate);
  NormRuns(w.ffn_post_norm, spec.rms_norm_eps, y);
  return y;
}

}  // namespace

std::vector<double> ForwardRef(const ModelFile& file, std::span<const int32_t> tokens) {
  const ModelSpec& spec = file.spec();
  const ModelWeights& weights = file.weights();
  Rows x;
  for (const int32_t token : tokens) {
    const std::vector<float> row = WeightRow(weights.embedding, token);
    x.emplace_back(row.begin(), row.end());
    for (double& element : x.back()) element *= spec.embedding_scale;
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    AddBranch(spec.residual_scale, AttentionBranch(spec, spec.layers[i], weights.layers[i], x), x);
    AddBranch(spec.residual_scale, FeedForwardBranch(spec, spec.layers[i], weights.layers[i], x),
              x);
  }
  x = Norm(x, weights.final_norm, spec.rms_norm_eps);
  const double cap = spec.logits_soft_cap;
  std::vector<double> logits;
  for (const Row& row : Project(weights.output, {}, x)) {
    for (const double logit : row) {
      const double scaled = spec.logits_scale * logit;
      logits.push_back(cap == 0 ? scaled : cap * std::tanh(scaled / cap));
    }
  }
  return logits;
}

}  // namespace kvick
